"""RDF change events of Wikidata."""

from pathlib import Path

import pytest
from tests.support.events import WD, WDS, event, write_events
from tests.support.replica_files import lines, rq, run

from evergraph.errors import DataError
from evergraph.rdfio import read_quads
from evergraph.sources import open_source


def test_operations(tmp_path: Path) -> None:
    """The oracle is what is there after each event, thought out by hand."""
    statement = f"<{WDS}Q1-abc>"
    path = write_events(
        tmp_path / "events.jsonl",
        event(
            "import",
            "Q1",
            added=f"<{WD}Q1> <urn:p> {statement} . {statement} <urn:v> 1 .",
            linked_shared="<urn:ref> <urn:v> 2 .",
        ),
        event("import", "Q11", added=f"<{WD}Q11> <urn:v> 3 ."),
        event(
            "diff",
            "Q1",
            added=f"{statement} <urn:v> 4 .",
            deleted=f"{statement} <urn:v> 1 .",
            unlinked_shared="<urn:ref> <urn:v> 2 .",
        ),
        event("import", "Q1", added=f"<http://en.example/One> <http://schema.org/about> <{WD}Q1> ; <urn:v> 5 ."),
        event("reconcile", "Q1", added=f"<{WD}Q1> <urn:v> 6 ."),
        event("delete", "Q1"),
    )
    rq(tmp_path / "i.rq", "", "SELECT * { ?s ?p ?o }")
    result = run("replicate", tmp_path / "i.rq", "--changes", path, "--target", tmp_path / "t")
    counts = [(line["added"], line["removed"]) for line in lines(result)]
    assert counts == [(3, 0), (1, 0), (1, 1), (2, 0), (1, 4), (0, 1)]
    held = {str(quad) for quad in read_quads(tmp_path / "t/data.nt")}
    assert {text.partition(" ")[0] for text in held} == {"<urn:ref>", f"<{WD}Q11>"}
    assert lines(run("replicate", tmp_path / "i.rq", "--changes", path, "--target", tmp_path / "t")) == []


def test_pieces_are_one_change(tmp_path: Path) -> None:
    one, two = (event("diff", "Q1", added=f"<{WD}Q1> <urn:v> {number} .") for number in (1, 2))
    one["sequence_length"] = two["sequence_length"] = 2
    two["sequence"] = 1
    [change] = open_source(write_events(tmp_path / "e.jsonl", one, two), clears=True).changes()
    assert len(change.request.added) == 2
    with pytest.raises(DataError, match="not complete"):
        list(open_source(write_events(tmp_path / "e.jsonl", one), clears=True).changes())
    with pytest.raises(DataError, match="did not begin"):
        list(open_source(write_events(tmp_path / "e.jsonl", two), clears=True).changes())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "without entity_id"),
        ('{"entity_id": "Q1", "operation": "merge"}', "'merge' is not known"),
        ('{"entity_id": "Q1", "operation": "import", "rdf_added_data": {"data": "", "mime_type": "x"}}', "mime_type"),
    ],
)
def test_bad_events(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "e.jsonl").write_text(text + "\n")
    with pytest.raises(DataError, match=f"e.jsonl:1: .*{message}"):
        list(open_source(tmp_path / "e.jsonl", clears=True).changes())
