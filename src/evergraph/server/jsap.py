"""JSAP files: the application profiles of SEPA's clients. A broker takes its ports from one, and checks its texts."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergraph.errors import DataError, EvergraphError
from evergraph.gate.request import parse_update
from evergraph.sparql.parser import parse_query


@dataclass(frozen=True, slots=True)
class Profile:
    """What a profile says that concerns a broker."""

    content: bytes
    port: int | None
    ws_port: int | None
    problems: tuple[str, ...]
    """Texts that are not SPARQL, with the reason; a client that sends them will be told the same."""


def read_profile(path: Path) -> Profile:
    """Read a profile."""
    try:
        content = path.read_bytes()
        found = json.loads(content)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}", hint="a JSAP file is a JSON object") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} is not a JSON object", hint="see the documentation of your SEPA client")
    return Profile(content, _port(found, "sparql11protocol"), _ws_port(found), tuple(_problems(found)))


def _port(found: dict[str, Any], name: str) -> int | None:
    port = _members(found, name).get("port")
    return port if isinstance(port, int) else None


def _ws_port(found: dict[str, Any]) -> int | None:
    protocol = _members(found, "sparql11seprotocol")
    kinds = _members(protocol, "availableProtocols")
    port = _members(kinds, str(protocol.get("protocol", "ws"))).get("port")
    return port if isinstance(port, int) else None


def _members(found: dict[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _problems(found: dict[str, Any]) -> list[str]:
    prologue = "".join(f"PREFIX {name}: <{iri}> " for name, iri in _members(found, "namespaces").items())
    problems = []
    for kind, parse in (("queries", parse_query), ("updates", parse_update)):
        for name, entry in _members(found, kind).items():
            text = entry.get("sparql") if isinstance(entry, dict) else None
            if not isinstance(text, str):
                problems.append(f"{kind}: {name} has no text")
                continue
            try:
                parse(prologue + bound_text(text, _members(entry, "forcedBindings")))
            except EvergraphError as error:
                problems.append(f"{kind}: {name}: {error.message.splitlines()[0]}")
    return problems


def bound_text(text: str, bindings: dict[str, Any]) -> str:
    """Put the values of forced bindings in the place of their variables, to see whether the text is SPARQL then."""
    for name, binding in bindings.items():
        members = binding if isinstance(binding, dict) else {}
        sample = "<urn:sample>" if members.get("type") in ("uri", "bnode") else '"sample"'
        text = re.sub(rf"[?$]{re.escape(name)}\b", sample, text)
    return text
