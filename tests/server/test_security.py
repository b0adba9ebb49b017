"""What a broker must not do, whoever asks."""

import base64
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.brokers import Served, Subscriber, broker, http
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from evergraph.database import open_database
from evergraph.errors import EvergraphError
from evergraph.server.auth import Clients
from evergraph.server.cors import is_loopback
from evergraph.server.guard import check_services, is_public
from evergraph.server.limits import RateLimit
from evergraph.server.problems import Problem
from evergraph.server.settings import Limits

QUERY = "SELECT * { ?s <urn:p> ?o }"


def register(served: Served, identity: str) -> dict[str, str]:
    message = {"register": {"client_identity": identity, "grant_types": ["client_credentials"]}}
    response = http().post(f"{served.url}/oauth/register", json=message)
    assert response.status_code == 201, response.text
    found: dict[str, str] = response.json()["credentials"]
    return found


def token(served: Served, identity: str) -> str:
    one = register(served, identity)
    response = http().post(f"{served.url}/oauth/token", auth=(one["client_id"], one["client_secret"]))
    assert response.status_code == 201, response.text
    answer = response.json()
    assert answer["token"] == {name: answer[name] for name in ("access_token", "token_type", "expires_in")}
    return str(answer["access_token"])


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with broker(require_tokens=True) as one:
        yield one


@pytest.fixture(scope="module")
def free() -> Iterator[Served]:
    limits = Limits(request_bytes=20_000, message_bytes=20_000, result_bytes=5_000, subscriptions_per_user=5)
    with broker(limits=limits) as one:
        yield one


# --- tokens


@pytest.mark.parametrize("path", ["/query", "/update", "/changes", "/subscribe", "/sparql/stream", "/metrics"])
def test_nothing_without_a_token(served: Served, path: str) -> None:
    method = "POST" if path == "/update" else "GET"
    for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic eDp5"}):
        response = http().request(method, served.url + path, headers=headers)
        assert response.status_code == 401
        assert "error_description" in response.json()


def test_below_secure_tokens_are_always_needed(free: Served) -> None:
    assert http().get(f"{free.url}/query", params={"query": "ASK {}"}).status_code == 200
    for path in ("/secure/query", "/secure//query", "/secure/query/"):
        assert http().get(free.url + path, params={"query": "ASK {}"}).status_code in (401, 404)
    headers = {"Authorization": f"Bearer {token(free, 'below')}"}
    assert http().get(f"{free.url}/secure/query", params={"query": "ASK {}"}, headers=headers).status_code == 200
    with Subscriber(free, "/secure/subscribe") as one:
        assert one.ask({"subscribe": {"sparql": QUERY}})["status_code"] == 401


def test_a_socket_belongs_to_one_user(served: Served) -> None:
    mine, theirs = token(served, "mine"), token(served, "theirs")
    with Subscriber(served) as one, Subscriber(served) as other:
        assert one.ask({"subscribe": {"sparql": QUERY, "alias": "a"}})["alias"] == "a"
        first = one.subscribe(QUERY, authorization=f"Bearer {mine}")
        bare = other.ask({"subscribe": {"sparql": QUERY}, "authorization": theirs})
        assert bare["notification"]["sequence"] == 0
        stolen = {"unsubscribe": {"spuid": first["spuid"], "authorization": f"Bearer {theirs}"}}
        assert other.ask(stolen)["error"] == "sid_not_found"
        resumed = {"subscribe": {"spuid": first["spuid"], "sequence": 0}, "authorization": theirs}
        assert other.ask(resumed)["error"] == "sid_not_found"
        changed = {"subscribe": {"sparql": QUERY}, "authorization": mine}
        assert other.ask(changed)["status_code"] == 401
        with Subscriber(served) as elsewhere:  # the owner may end it from anywhere
            ended = elsewhere.ask({"unsubscribe": {"spuid": first["spuid"]}, "authorization": mine})
            assert ended == {"unsubscribed": {"spuid": first["spuid"]}}


def test_wrong_secrets_and_forged_tokens(served: Served) -> None:
    one = register(served, "forger")
    assert http().post(f"{served.url}/oauth/token", auth=(one["client_id"], "guess")).status_code == 401
    assert http().post(f"{served.url}/oauth/token", auth=("unknown", one["client_secret"])).status_code == 401
    assert http().post(f"{served.url}/oauth/token", headers={"Authorization": "Basic %%%"}).status_code == 401
    good = token(served, "signer")
    head, payload, signature = good.split(".")

    def encoded(members: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(members).encode()).rstrip(b"=").decode()

    forged = [
        f"{encoded({'alg': 'none'})}.{payload}.",
        f"{head}.{encoded({'sub': one['client_id'], 'exp': 9e12})}.{signature}",
        good[:-2],
        "a.b.c",
        "é.é.é",
        "." * 10,
    ]
    for text in forged:
        forgery = {b"Authorization": f"Bearer {text}".encode()}
        assert http().get(f"{served.url}/query?query=ASK%7B%7D", headers=forgery).status_code == 401
    headers = {"Authorization": f"Bearer {good}"}
    assert http().get(f"{served.url}/query?query=ASK%7B%7D", headers=headers).status_code == 200


def test_tokens_end_and_identities_are_taken_once(tmp_path: Path) -> None:
    now = 1000.0
    clients = Clients(tmp_path, open_to_all=False, identities=frozenset({"app"}), seconds=60, clock=lambda: now)
    message = {"register": {"client_identity": "app", "grant_types": ["client_credentials"]}}
    credentials = clients.register(message)["credentials"]
    stranger = {"register": {"client_identity": "x", "grant_types": ["client_credentials"]}}
    nonsense: tuple[object, ...] = ([], {}, {"register": 1})
    for refused in (message, stranger, *nonsense):
        with pytest.raises(Problem):
            clients.register(refused)
    pair = f"{credentials['client_id']}:{credentials['client_secret']}"
    text = clients.token(f"Basic {base64.b64encode(pair.encode()).decode()}")["access_token"]
    again = Clients(tmp_path, open_to_all=False, identities=frozenset(), seconds=60, clock=lambda: now)
    assert again.user(f"Bearer {text}") == again.user(text) == credentials["client_id"]
    now += 61
    with pytest.raises(Problem, match="expired"):
        again.user(text)
    assert credentials["client_secret"] not in (tmp_path / "clients.json").read_text()
    assert (tmp_path / "token.key").stat().st_mode & 0o077 == 0


# --- sizes, floods and malformed input


def test_what_is_too_large_is_refused(free: Served) -> None:
    response = http().post(f"{free.url}/update", data={"update": "#" * 30_000})
    assert (response.status_code, response.json()["error"]) == (413, "too_large")

    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b"#" * 1_000

    with contextlib.suppress(httpx.HTTPError):
        headers = {"Content-Type": "application/sparql-update"}
        assert http().post(f"{free.url}/update", content=chunks(), headers=headers).status_code == 413
    free.update("INSERT DATA { <urn:big> <urn:big> '" + "x" * 9_000 + "' }")
    response = http().get(f"{free.url}/query", params={"query": "SELECT * { <urn:big> <urn:big> ?o }"})
    assert response.status_code == 413
    with Subscriber(free) as one:
        one.send(json.dumps({"subscribe": {"sparql": "#" * 30_000}}))
        with pytest.raises(ConnectionClosed) as closed:
            one.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
    assert http().get(f"{free.url}/echo").status_code == 200


def test_subscriptions_per_user(free: Served) -> None:
    with Subscriber(free) as one:
        for _ in range(5):
            one.subscribe(QUERY)
        refused = one.ask({"subscribe": {"sparql": QUERY, "alias": "sixth"}})
        assert (refused["error"], refused["status_code"], refused["alias"]) == ("too_many_requests", 429, "sixth")


def test_floods_are_slowed_down() -> None:
    with broker(limits=Limits(requests_per_second=2)) as served:
        found = [http().get(f"{served.url}/query?query=ASK%7B%7D") for _ in range(30)]
        statuses = [response.status_code for response in found]
        assert statuses[:4] == [200] * 4
        [refused, *_] = [response for response in found if response.status_code != 200]
        assert (refused.status_code, refused.json()["error"]) == (429, "too_many_requests")
        assert int(refused.headers["retry-after"]) >= 1


def test_a_bucket_fills_again() -> None:
    now = 0.0
    limit = RateLimit(10, clock=lambda: now)
    for _ in range(20):
        limit.check("a")
    with pytest.raises(Problem):
        limit.check("a")
    limit.check("b")
    now += 0.1
    limit.check("a")


@pytest.mark.parametrize(
    "message",
    [
        "", "{", "[]", "1", "null", '"subscribe"', "{}", '{"subscribe":1}', '{"subscribe":{}}',
        '{"subscribe":{"sparql":1}}',
        '{"subscribe":{"sparql":"SELECT"}}', '{"unsubscribe":{}}', '{"unsubscribe":{"spuid":7}}',
        '{"subscribe":{"sparql":"ASK {}","default-graph-uri":7}}',
        '{"subscribe":{"sparql":"ASK {}","default-graph-uri":["x y"]}}',
        '{"subscribe":{"spuid":"x","sequence":true}}', '{"subscribe":{"spuid":"x","sequence":0}}', '{"x":' * 3_000,
        '{"subscribe":{"sparql":"SELECT * { SERVICE <http://localhost/> { ?s ?p ?o } }"}}', "\x00", "\U0001f600",
    ],
)  # fmt: skip
def test_malformed_messages_get_an_error(free: Served, message: str) -> None:
    with Subscriber(free) as one:
        answer = one.ask(message)
        assert {"error", "error_description", "status_code"} <= answer.keys()
        one.subscribe(QUERY)


def test_binary_messages_get_an_error(free: Served) -> None:
    with Subscriber(free) as one:
        one.socket.send(b"\xff\x00")
        assert one.receive()["error"] == "JsonParseException"


fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
names = st.sampled_from(
    ["sparql", "alias", "spuid", "sequence", "default-graph-uri", "named-graph-uri", "authorization"]
)


@fuzz
@given(
    st.text(max_size=200)
    | st.builds(
        lambda kind, members: json.dumps({kind: members}),
        st.sampled_from(["subscribe", "unsubscribe", "other"]),
        json_values | st.dictionaries(names, json_values | st.just(QUERY), max_size=5),
    )
)
def test_any_message_is_answered(free: Served, message: str) -> None:
    with Subscriber(free) as one:
        try:
            answer = one.ask(message.encode("utf-8", "replace").decode())
        except ConnectionClosed:
            return
        assert answer.keys() & {"error", "notification", "unsubscribed", "resumption"}


@fuzz
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]),
    st.sampled_from(["/", "/query", "/update", "/sparql", "/changes", "/subscribe", "/sparql/stream", "/oauth/token",
                     "/oauth/register", "/%2e%2e/", "/..%2f..%2fetc/passwd", "/page/../x", "//", "/secure", "/\u00e9"]),
    st.dictionaries(st.sampled_from(["query", "update", "after", "limit", "wait", "commitNum", "iteratorType",
                                     "default-graph-uri", "using-graph-uri"]), st.text(max_size=20), max_size=3),
    st.sampled_from(["application/sparql-query", "application/sparql-update", "application/x-www-form-urlencoded",
                     "application/json", "text/plain; charset=utf-16", "", "garbage;;;=", "\u00ff"]),
    st.binary(max_size=100),
)  # fmt: skip
def test_any_request_is_answered(
    free: Served, method: str, path: str, params: dict[str, str], kind: str, body: bytes
) -> None:
    if path == "/subscribe" or "wait" in params:
        params = {name: value for name, value in params.items() if name not in ("query", "wait")}
    headers = {b"Content-Type": kind.encode("latin-1"), b"Accept": b"*/*"}
    response = http().request(method, free.url + path, params=params, headers=headers, content=body, timeout=20)
    assert response.status_code < 500 or response.status_code == 501, response.text


def test_raw_nonsense_does_not_stop_the_broker(free: Served) -> None:
    host, port = free.url.removeprefix("http://").split(":")
    for data in (
        b"\x00" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /update HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"A" * 70_000,
    ):
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 5) as one:
            one.sendall(data)
            one.settimeout(2)
            one.recv(100)
    assert http().get(f"{free.url}/echo").status_code == 200


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/page/index.html", "/%2e%2e/clients.json", "/broker/token.key", "/.git"]
)
def test_paths_lead_nowhere_else(free: Served, path: str) -> None:
    response = http().get(free.url + path)
    assert (response.status_code, response.json()["error"]) == (404, "wrong_path")


# --- pages of other origins


def test_pages_of_other_origins_are_kept_out(free: Served) -> None:
    evil = {"Origin": "http://evil.example"}
    response = http().post(f"{free.url}/update", data={"update": "DROP ALL"}, headers=evil)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers
    assert "access-control-allow-origin" not in http().options(f"{free.url}/update", headers=evil).headers
    with pytest.raises(InvalidStatus), connect(f"{free.ws_url}/subscribe", origin=Origin("http://evil.example")):
        pass
    own = {"Origin": free.url}
    assert http().get(f"{free.url}/query?query=ASK%7B%7D", headers=own).status_code == 200
    rebound = http().get(f"{free.url}/query?query=ASK%7B%7D", headers={"Host": "evil.example:8000"})
    assert rebound.status_code == 421


def test_named_origins_are_let_in() -> None:
    with broker(origins=("http://good.example",)) as served:
        good = {"Origin": "http://good.example", "Access-Control-Request-Method": "POST"}
        preflight = http().options(f"{served.url}/update", headers=good)
        assert preflight.headers["access-control-allow-origin"] == "http://good.example"
        assert "POST" in preflight.headers["access-control-allow-methods"]
        with connect(f"{served.ws_url}/subscribe", origin=Origin("http://good.example")):
            pass


# --- what the broker fetches


class _Secret(BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(302 if self.path == "/elsewhere" else 200)
        self.send_header("Content-Type", "text/turtle")
        if self.path == "/elsewhere":
            self.send_header("Location", "http://127.0.0.2:1/")
        self.end_headers()
        self.wfile.write(b"<urn:secret> <urn:is> 'out' .")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def secret() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Secret) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_load_reaches_nothing_private(secret: str, tmp_path: Path) -> None:
    private = tmp_path / "private.ttl"
    private.write_text("<urn:secret> <urn:is> 'out' .")
    _Secret.asked = 0
    for load, hosts in ((False, ()), (True, ()), (True, ("127.0.0.1",))):
        allowed = bool(hosts)
        with broker(load=load, hosts=frozenset(hosts)) as served:
            for address in (secret, secret.replace("127.0.0.1", "[::ffff:127.0.0.1]"), f"file://{private}"):
                response = http().post(f"{served.url}/update", data={"update": f"LOAD <{address}>"})
                right = 200 if allowed and address == secret else 403
                assert response.status_code == right, (address, response.text)
            if allowed:
                response = http().post(f"{served.url}/update", data={"update": f"LOAD <{secret}elsewhere>"})
                assert response.status_code == 403
    assert _Secret.asked == 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "SELECT * { SERVICE SILENT ?where { ?s ?p ?o } }",
        "SELECT * { { SELECT * { service <http://good.example@127.0.0.1/> { ?s ?p ?o } } } }",
        "PREFIX e: <http://127.0.0.1/> SELECT * { SERVICE e:x { ?s ?p ?o } }",
        "INSERT { ?s ?p ?o } WHERE { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }",
        "SELECT * { \\u0053ERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
    ],
)
def test_service_is_refused(free: Served, text: str) -> None:
    path = "update" if text.startswith("INSERT") else "query"
    response = http().post(f"{free.url}/{path}", data={path: text})
    assert response.status_code in (400, 403), response.text


def test_service_is_allowed_for_named_hosts() -> None:
    hosts = frozenset({"good.example"})
    check_services("SELECT * { SERVICE <http://good.example/sparql> { ?s ?p ?o } }", hosts)
    check_services("SELECT ?service { ?service <urn:SERVICE> 'SERVICE' } # SERVICE", hosts)
    for bad in ("SERVICE <http://good.example.evil/>", "SERVICE <http://evil@good.example.evil/>", "SERVICE ?x"):
        with pytest.raises(EvergraphError):
            check_services(f"SELECT * {{ {bad} {{ ?s ?p ?o }} }}", hosts)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "::1", "fe80::1",
     "fc00::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1", "255.255.255.255", "ff02::1"],
)  # fmt: skip
def test_private_addresses(address: str) -> None:
    assert not is_public(address)


def test_public_addresses() -> None:
    assert is_public("93.184.216.34")
    assert is_public("2606:2800:220:1:248:1893:25c8:1946")
    assert is_loopback("localhost")
    assert not is_loopback("example.org")


def test_a_query_may_take_only_so_long() -> None:
    database = open_database()
    database.update("INSERT DATA { " + " ".join(f"<urn:{n}> <urn:p> {n} ." for n in range(60)) + " }")
    with broker(database, limits=Limits(query_seconds=0.3)) as served:
        begin = time.monotonic()
        slow = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
        response = http().get(f"{served.url}/query", params={"query": slow}, timeout=30)
        assert (response.status_code, response.json()["error"]) == (503, "query_timeout")
        assert time.monotonic() - begin < 5
        assert http().get(f"{served.url}/query?query=ASK%7B%7D").status_code == 200
