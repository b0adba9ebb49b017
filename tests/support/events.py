"""RDF change events of Wikidata for tests."""

import json
from pathlib import Path
from typing import Any

WD, WDS, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/entity/statement/", "urn:wdt:"


def event(operation: str, entity: str, **data: str) -> dict[str, Any]:
    """Make an event."""
    made: dict[str, Any] = {
        "entity_id": entity,
        "operation": operation,
        "rev_id": 1,
        "sequence": 0,
        "sequence_length": 1,
    }
    for name, text in data.items():
        made[f"rdf_{name}_data"] = {"data": text, "mime_type": "text/turtle"}
    return made


def write_events(path: Path, *events: dict[str, Any]) -> Path:
    """Write a file of events."""
    path.write_text("".join(json.dumps(one) + "\n" for one in events))
    return path
