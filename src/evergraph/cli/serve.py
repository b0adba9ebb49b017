"""``evergraph serve``: the broker."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from evergraph.cli.options import DefaultGraph, QueryEndpoint, Store, UpdateEndpoint, open_target
from evergraph.database import open_database
from evergraph.engines.local.pauses import watch_collector
from evergraph.errors import UsageError
from evergraph.server.cors import is_loopback
from evergraph.server.guard import guarded_loader
from evergraph.server.jsap import read_profile
from evergraph.server.logs import set_up, tell
from evergraph.server.run import check_certificate, run
from evergraph.server.settings import Limits, Settings

_DEFAULTS = Limits()
_SWITCH = 0.001
"""After how many seconds the thread that writes lets the others go on; Python's 5 ms are felt by subscribers."""


def _limit(description: str) -> Any:
    return typer.Option(metavar="N", help=description, rich_help_panel="Limits", min=1)


def serve(
    store: Store = None,
    endpoint: QueryEndpoint = None,
    update_endpoint: UpdateEndpoint = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --endpoint: where to keep the change log and the broker's own files."),
    ] = None,
    default_graph: DefaultGraph = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", help="Port for everything; 0 takes a free one. Default: 8000.")
    ] = None,
    ws_port: Annotated[
        int | None, typer.Option(metavar="N", help="Another port, for clients that want WebSockets apart (SEPA: 9000).")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen at; only this machine can reach the default.")
    ] = "127.0.0.1",
    jsap: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Application profile: take its ports, check its texts, serve it at /jsap."),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certificate (PEM): serve HTTPS and WSS.", rich_help_panel="Security"),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its key, if it is in a file of its own.", rich_help_panel="Security"),
    ] = None,
    require_tokens: Annotated[
        bool,
        typer.Option(
            "--require-tokens", help="Everybody needs a token, not only below /secure.", rich_help_panel="Security"
        ),
    ] = False,
    registration: Annotated[
        bool | None,
        typer.Option(
            "--registration/--no-registration",
            help="Whether anybody may register. Default: on loopback only.",
            rich_help_panel="Security",
        ),
    ] = None,
    identity: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A client that may register; may be repeated.", rich_help_panel="Security"),
    ] = None,
    token_seconds: Annotated[
        int, typer.Option(metavar="N", help="How long a token is valid.", rich_help_panel="Security", min=1)
    ] = 3600,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Web origin whose pages may use the broker, * for all; may be repeated.",
            rich_help_panel="Security",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Name that a broker on loopback is asked under, by a proxy; may be repeated.",
            rich_help_panel="Security",
        ),
    ] = None,
    allow_load: Annotated[
        bool,
        typer.Option(
            "--allow-load", help="Let LOAD fetch documents from public addresses.", rich_help_panel="Security"
        ),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Host that LOAD and SERVICE may reach, wherever it is; may be repeated.",
            rich_help_panel="Security",
        ),
    ] = None,
    query_seconds: Annotated[
        float,
        typer.Option(metavar="N", help="How long a query may take; 0: for ever.", rich_help_panel="Limits", min=0),
    ] = _DEFAULTS.query_seconds,
    result_bytes: Annotated[int, _limit("Size of the largest result of a query.")] = _DEFAULTS.result_bytes,
    request_bytes: Annotated[int, _limit("Size of the largest request.")] = _DEFAULTS.request_bytes,
    message_bytes: Annotated[int, _limit("Size of the largest message over WebSocket.")] = _DEFAULTS.message_bytes,
    requests_per_second: Annotated[
        float, typer.Option(metavar="N", help="For each user; 0: any number.", rich_help_panel="Limits", min=0)
    ] = _DEFAULTS.requests_per_second,
    subscriptions_per_user: Annotated[
        int, _limit("How many subscriptions a client, or all guests of one address, may have.")
    ] = _DEFAULTS.subscriptions_per_user,
    connections: Annotated[int, _limit("How many subscribers may be connected.")] = _DEFAULTS.connections,
    backlog: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Notifications that wait for a slow reader before they are put together.",
            rich_help_panel="Limits",
            min=1,
        ),
    ] = _DEFAULTS.backlog,
    keep: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="How long a subscription can be resumed after its connection is lost.",
            rich_help_panel="Limits",
            min=0,
        ),
    ] = 86_400.0,
    log_format: Annotated[str, typer.Option(metavar="text|json", help="Form of the log on standard error.")] = "text",
    log_level: Annotated[
        str, typer.Option(metavar="LEVEL", help="debug (every request), info, warning or error.")
    ] = "info",
) -> None:
    """Run the broker: SPARQL over HTTP, subscriptions over WebSocket and Server-Sent Events, and a feed of changes.

    Without --store and --endpoint the data are in memory, and gone when the broker stops. When it is ready, it prints
    its address on standard error; there is a web page at that address. SIGINT and SIGTERM end it: what was begun is
    finished.

    **Examples**

    `evergraph serve --store db`

    `evergraph serve --store db --ws-port 9000`  (ports that SEPA's clients expect)

    `evergraph serve --endpoint http://localhost:3030/ds/query --update-endpoint http://localhost:3030/ds/update`

    `evergraph serve --store db --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --require-tokens --identity app`
    """
    if log_format not in ("text", "json"):
        raise UsageError(f"--log-format is text or json, not {log_format!r}")
    if log_level not in ("debug", "info", "warning", "error"):
        raise UsageError(f"--log-level is debug, info, warning or error, not {log_level!r}")
    if tls_key is not None and tls_cert is None:
        raise UsageError("--tls-key belongs to --tls-cert", hint="name the certificate too")
    set_up(as_json=log_format == "json", level=log_level)
    profile = read_profile(jsap) if jsap else None
    for problem in profile.problems if profile else ():
        tell(f"{jsap}: {problem}", 30)
    folder = store / "broker" if store else log / ".broker" if log else None
    settings = Settings(
        host=host,
        port=port if port is not None else (profile and profile.port) or 8000,
        ws_port=ws_port if ws_port is not None or profile is None else profile.ws_port,
        certificate=tls_cert,
        key=tls_key,
        folder=folder,
        require_tokens=require_tokens,
        registration=is_loopback(host) if registration is None else registration,
        identities=frozenset(identity or ()),
        token_seconds=token_seconds,
        origins=tuple(origin or ()),
        names=frozenset(name or ()),
        load=allow_load,
        hosts=frozenset(allow_host or ()),
        keep_seconds=keep,
        limits=Limits(
            request_bytes=request_bytes,
            message_bytes=message_bytes,
            result_bytes=result_bytes,
            query_seconds=query_seconds,
            requests_per_second=requests_per_second,
            subscriptions_per_user=subscriptions_per_user,
            connections=connections,
            backlog=backlog,
        ),
    )
    check_certificate(settings)
    if not is_loopback(host) and not require_tokens:
        tell(f"anybody who can reach {host} can read and write everything; see --require-tokens", 30)
    watch_collector()
    sys.setswitchinterval(_SWITCH)
    loader = guarded_loader(settings.load, settings.hosts)
    if store is None and endpoint is None:
        database = open_database(load=loader)
    else:
        database = open_target(store, endpoint, update_endpoint, log=log, default_graph=default_graph, load=loader)
    try:
        _loop(run(database, settings, _tell_ready, profile.content if profile else None))
    finally:
        database.close()


def _tell_ready(addresses: list[str]) -> None:
    first, *rest = addresses
    sys.stderr.write(f"evergraph: listening at {first}" + "".join(f", WebSockets also at {one}" for one in rest) + "\n")
    sys.stderr.flush()


def _loop(work: object) -> None:
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        asyncio.run(work)  # type: ignore[arg-type]
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)  # type: ignore[arg-type]
