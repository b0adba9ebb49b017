"""Linksets as views of pipelines: what a definition may say."""

from pathlib import Path

import pytest

from evergraph.linking.definition import LinksetInvalid
from evergraph.pipeline import PipelineInvalid, load_pipeline

LINKSET = """[linkset]
predicate = "owl:sameAs"

[source]
text = "CONSTRUCT { ?x a <urn:A> ; <urn:name> ?n } WHERE { ?x a <urn:A> ; <urn:name> ?n }"

[target]
text = "CONSTRUCT { ?x a <urn:B> ; <urn:name> ?n } WHERE { ?x a <urn:B> ; <urn:name> ?n }"

[[match.compare]]
source = "<urn:name>"
measure = "levenshtein"
max = 1
"""
PIPELINE = """[source]
changes = "changes"

[[view]]
name = "same"
linkset = "same.toml"

[[view.sink]]
kind = "patch"
path = "out.rdfp"
"""


def define(folder: Path, linkset: str = LINKSET, pipeline: str = PIPELINE) -> Path:
    (folder / "changes").mkdir()
    (folder / "changes/000001.added.nt").write_text("")
    (folder / "same.toml").write_text(linkset)
    path = folder / "pipeline.toml"
    path.write_text(pipeline)
    return path


def test_a_linkset_is_a_view_of_triples_with_two_queries(tmp_path: Path) -> None:
    [view] = load_pipeline(define(tmp_path)).views
    assert list(view.queries()) == ["same source", "same target"]
    assert view.linkset is not None
    assert view.linkset.predicate.value == "http://www.w3.org/2002/07/owl#sameAs"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"same.toml"', '"other.toml"', r"pipeline\.toml:6: view\.linkset: no such file or folder: .*other\.toml"),
        ('"same.toml"', '"same.toml"\nquery = "a.rq"', r"pipeline\.toml:7: view\.query: a view is either a linkset or"),
        ('"same.toml"', '"same.toml"\nlinksets = 1', r"pipeline\.toml:7: view\.linksets: unknown key 'linksets'"),
        ('linkset = "same.toml"', "", r"pipeline\.toml:4: view: expected one of 'query', 'text', 'interest' and"),
    ],
)
def test_mistakes_in_the_pipeline(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(PipelineInvalid, match=message):
        load_pipeline(define(tmp_path, pipeline=PIPELINE.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("levenshtein", "levenstein", r"same\.toml:12: match\.compare\.measure: unknown measure 'levenstein'"),
        ("[source]", '[source]\ninit = "a.nt"', r"same\.toml:5: source\.init: 'init' has no meaning for a linkset in"),
        ("[target]", '[target]\nchanges = "a"', r"same\.toml:8: target\.changes: 'changes' has no meaning"),
        ("[source]", '[output]\nlinks = "a.nt"\n[source]', r"same\.toml:4: output: 'output' has no meaning"),
        ("[source]", 'state = "a"\n[source]', r"same\.toml:4: linkset\.state: 'state' has no meaning"),
    ],
)
def test_mistakes_in_the_linkset(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(LinksetInvalid, match=message):
        load_pipeline(define(tmp_path, LINKSET.replace(old, new, 1)))
