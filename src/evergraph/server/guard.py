"""What a broker reads on behalf of its clients: nothing, unless its operator allows it.

LOAD fetches documents from public addresses only, and from hosts that the operator names. The address is looked up
once and then used, and every redirect is looked at again, so that no name can point somewhere else in between.
SERVICE is evaluated by the store, which follows addresses on its own: only hosts that the operator names can be used.
"""

import ipaddress
import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from evergraph.errors import SyntaxProblem, UnsupportedQuery, UpdateFailed
from evergraph.gate.extract import Loader
from evergraph.gate.load import ACCEPT, quads_of_response
from evergraph.server.problems import Forbidden
from evergraph.sparql.lexer import Kind, tokens
from evergraph.terms import DEFAULT_GRAPH, GraphName, NamedNode, Quad

_SERVICE = re.compile("service", re.IGNORECASE)
_ESCAPE = re.compile(r"\\u[0-9A-Fa-f]{4}|\\U000[0-9A-Fa-f]{5}|\\U0010[0-9A-Fa-f]{4}")
_REDIRECTS = 5
_BYTES = 256 * 2**20
DEEPEST = 300
MOST_PARTS = 1_000
STACK = 64 * 2**20
"""Bytes of stack for threads that let the store evaluate something, so that this much cannot fill it."""
_SHORT = 600
_SHAPE = re.compile(
    r"""\"{3}(?:[^\"\\]|\\.|"(?!""))*"{3}|'{3}(?:[^'\\]|\\.|'(?!''))*'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    r"""|<[^<>"{}|^`\\\s]*>|\#[^\n]*"""
    r"""|(?P<open>[{(\[]|<<)|(?P<close>[})\]]|>>)"""
    r"""|(?P<operator>\|\||&&)|(?<![?$:A-Za-z_])(?P<part>UNION|OPTIONAL|MINUS|FILTER|BIND|EXISTS|IF|COALESCE|SELECT|SERVICE|LATERAL)(?![A-Za-z_])""",
    re.IGNORECASE | re.DOTALL,
)
"""What counts, and around it texts, IRIs and comments, in which nothing does."""


def check_shape(text: str) -> None:
    """Refuse a query or update that is nested so deeply, or has so many parts, that the store would not survive it.

    The store goes down one level of its stack for each, and a stack that is full ends the process.
    """
    if len(text) < _SHORT:
        return
    text = _ESCAPE.sub(lambda found: chr(int(found[0][2:], 16)), text) if "\\" in text else text
    depth = parts = 0
    for found in _SHAPE.finditer(text):
        match found.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth -= 1
            case "part" | "operator":
                parts += 1
        if depth > DEEPEST or parts > MOST_PARTS:
            raise UnsupportedQuery(
                f"more than {DEEPEST} levels are nested, or there are more than {MOST_PARTS:,} parts",
                hint="take it apart, and send several requests.",
            )


def check_services(text: str, hosts: frozenset[str]) -> None:
    """Refuse a query or update with SERVICE, unless it names a host that is allowed."""
    text = _ESCAPE.sub(lambda found: chr(int(found[0][2:], 16)), text) if "\\" in text else text
    if not _SERVICE.search(text):
        return
    try:
        found = list(tokens(text))
    except SyntaxProblem:
        if re.search(r"\bservice\b", text, re.IGNORECASE):
            _check_service("", hosts)  # who knows how others read it
        return
    for place, token in enumerate(found):
        if token.kind is Kind.WORD and token.text.upper() == "SERVICE":
            follows = found[place + 1 :]
            if follows and follows[0].text.upper() == "SILENT":
                follows = follows[1:]
            _check_service(follows[0].text if follows and follows[0].kind is Kind.IRIREF else "", hosts)


def _check_service(reference: str, hosts: frozenset[str]) -> None:
    parts = urlsplit(reference[1:-1])
    if "\\" not in reference and parts.scheme in ("http", "https") and parts.hostname in hosts:
        return
    raise Forbidden(
        f"SERVICE {reference or 'without a plain IRI'} is not allowed here",
        hint="the operator of the broker can allow a host: evergraph serve --allow-host NAME",
    )


def guarded_loader(allowed: bool, hosts: frozenset[str], timeout: float = 30.0) -> Loader:
    """Return what reads documents for LOAD."""

    def load(source: NamedNode, into: GraphName) -> Iterator[Quad]:
        if not allowed:
            raise Forbidden(
                "LOAD is not allowed here", hint="the operator of the broker can allow it: evergraph serve --allow-load"
            )
        for quad in quads_of_response(_fetch(source.value, hosts, timeout), source.value):
            if quad.graph_name != DEFAULT_GRAPH:
                raise UpdateFailed("the document holds named graphs", hint="LOAD is for documents with a single graph")
            yield Quad(quad.subject, quad.predicate, quad.object, into)

    return load


def _fetch(address: str, hosts: frozenset[str], timeout: float) -> httpx.Response:
    url = httpx.URL(address)
    with httpx.Client(timeout=timeout, trust_env=False, follow_redirects=False) as client:
        for _ in range(_REDIRECTS + 1):
            try:
                response = _ask(client, url, hosts)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise UpdateFailed(f"{url}: {error}", hint="check that the address answers") from error
            if not response.has_redirect_location:
                return response
            url = url.join(response.headers["location"])
    raise UpdateFailed(f"{address} redirects more than {_REDIRECTS} times")


def _ask(client: httpx.Client, url: httpx.URL, hosts: frozenset[str]) -> httpx.Response:
    """Ask the address that was looked at, under the name that was asked for."""
    if url.scheme not in ("http", "https") or not url.host:
        raise Forbidden(f"{url.scheme}: addresses cannot be loaded here", hint="use an http: or https: IRI")
    address = _address(url, hosts)
    request = client.build_request(
        "GET",
        url.copy_with(host=address),
        headers={"Accept": ACCEPT, "Host": url.netloc.decode("ascii").rpartition("@")[2]},
        extensions={"sni_hostname": url.host},
    )
    response = client.send(request, stream=True)
    try:
        content = bytearray()
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > _BYTES:
                raise UpdateFailed(f"{url} is larger than {_BYTES >> 20} MiB", hint="load it with evergraph load")
        if not response.has_redirect_location:
            response.raise_for_status()
        headers = {name: response.headers[name] for name in ("content-type", "location") if name in response.headers}
        whole = httpx.Response(response.status_code, headers=headers, content=bytes(content))
        whole.request = httpx.Request("GET", url)
        return whole
    finally:
        response.close()


def _address(url: httpx.URL, hosts: frozenset[str]) -> str:
    """Look up the address of a host; refuse one that is not public, unless the host is allowed."""
    try:
        found = socket.getaddrinfo(
            url.host, url.port or (443 if url.scheme == "https" else 80), type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        raise UpdateFailed(f"{url.host} is not known", hint="check the name of the host") from error
    addresses = [str(one[4][0]) for one in found]
    if url.host not in hosts and not all(is_public(address) for address in addresses):
        raise Forbidden(
            f"{url.host} is at an address that is not public",
            hint="the operator of the broker can allow a host: evergraph serve --allow-host NAME",
        )
    return addresses[0]


def is_public(address: str) -> bool:
    """Tell whether an IP address can be reached from everywhere."""
    one = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(one, ipaddress.IPv6Address):
        inner = one.ipv4_mapped or one.sixtofour or (one.teredo[1] if one.teredo else None)
        if inner is not None:
            return is_public(str(inner))
        if one in ipaddress.ip_network("64:ff9b::/96"):
            return is_public(str(ipaddress.IPv4Address(int(one) & 0xFFFFFFFF)))
    return one.is_global and not one.is_multicast
