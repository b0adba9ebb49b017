"""What the tests let sepy do, in an environment that has it. Says what happens as JSON lines."""

import json
import sys
import threading

from sepy.SEPA import SEPA  # type: ignore[import-not-found]


def say(what: str, value: object = None) -> None:
    sys.stdout.write(json.dumps([what, value]) + "\n")
    sys.stdout.flush()


def main() -> None:
    http, ws, secure = sys.argv[1:]
    prefix = "/secure" if secure == "yes" else ""
    tokens = {"token_url": f"{http}/oauth/token", "register_url": f"{http}/oauth/register"}
    client = SEPA(client_id=sys.argv[0] + secure)
    news = threading.Event()

    def update(text: str) -> None:
        say("updated", json.loads(client.sparql_update(text, host=f"{http}{prefix}/update", **tokens)))

    def query(text: str) -> None:
        say("queried", client.sparql_query(text, host=f"{http}{prefix}/query", **tokens)["results"]["bindings"])

    def handler(added: object, removed: object) -> None:
        say("notified", [added, removed])
        news.set()

    def subscribe(text: str) -> str:
        news.clear()
        spuid: str = client.sparql_subscribe(text, "alias", handler, host=f"{ws}{prefix}/subscribe", **tokens)
        say("subscribed", spuid)
        assert news.wait(10)
        return spuid

    def notified(text: str) -> None:
        news.clear()
        update(text)
        assert news.wait(10)

    update('INSERT DATA { <urn:a> <urn:p> "first" }')
    query("SELECT ?o { <urn:a> <urn:p> ?o }")
    spuid = subscribe("SELECT ?o { <urn:a> <urn:p> ?o }")
    notified('DELETE { <urn:a> <urn:p> ?o } INSERT { <urn:a> <urn:p> "second" } WHERE { <urn:a> <urn:p> ?o }')
    client.unsubscribe(spuid)
    update('INSERT DATA { <urn:a> <urn:p> "unheard" }')
    say("ready")
    sys.stdin.readline()  # the broker is started again meanwhile
    query("SELECT ?o { <urn:a> <urn:p> ?o }")
    subscribe("SELECT ?o { <urn:a> <urn:p> ?o }")
    notified('INSERT DATA { <urn:a> <urn:p> "third" }')
    client.clear(host=f"{http}{prefix}/update", **tokens)
    say("done")


main()
