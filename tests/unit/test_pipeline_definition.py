"""Definitions of pipelines: what is read, and what is said about mistakes: file, line, key, and what was expected."""

from pathlib import Path

import pytest

from evergraph.errors import DataError, EvergraphError, SyntaxProblem
from evergraph.pipeline import PipelineInvalid, load_pipeline
from evergraph.pipeline.definition import (
    ChangesetsSink,
    EndpointSink,
    JsonLinesSink,
    PatchSink,
    SnapshotSink,
    StoreSink,
    TableSink,
    targets,
)
from evergraph.sources.feeds import Limit
from evergraph.terms import NamedNode

SOURCE = '[source]\nchanges = "changes.rdfp"\n'
VIEW = '[[view]]\nname = "a"\ntext = "SELECT * { ?s ?p ?o }"\n'
GRAPH = '[[view]]\nname = "g"\ntext = "CONSTRUCT WHERE { ?s ?p ?o }"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "changes.rdfp").write_text("TX .\nTC .\n")
    (tmp_path / "dump.nt").write_text("")
    (tmp_path / "a.rq").write_text("SELECT * { ?s ?p ?o }")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "places.toml"
    path.write_text(text)
    return path


def test_everything(folder: Path) -> None:
    path = write(
        folder,
        """
        [pipeline]
        name = "all"
        state = "st"
        [source]
        changes = "changes.rdfp"
        init = "dump.nt"
        settle = 3
        skip_damaged = true
        [batch]
        changes = 5
        bytes = 1000
        [spark]
        master = "local[1]"
        memory = "1g"
        conf = { "spark.sql.shuffle.partitions" = 3 }
        [[sink]]
        kind = "patch"
        path = "quads"
        [[view]]
        name = "a"
        query = "a.rq"
        [[view.sink]]
        kind = "table"
        path = "out/table"
        [[view.sink]]
        kind = "jsonl"
        path = "out/a.jsonl"
        [[view]]
        name = "g"
        text = '''
          CONSTRUCT WHERE { ?s ?p ?o }'''
        [[view.sink]]
        kind = "changesets"
        path = "out/g"
        compress = false
        [[view.sink]]
        kind = "snapshot"
        path = "out/g.nt"
        [[view.sink]]
        kind = "endpoint"
        query = "http://127.0.0.1/query"
        update = "http://127.0.0.1/update"
        graph = "urn:g"
        """,
    )
    found = load_pipeline(path)
    assert (found.name, found.state, found.changes) == ("all", folder / "st", folder / "changes.rdfp")
    assert (found.init, found.settle, found.limit) == ((folder / "dump.nt",), 3.0, Limit(5, 1000))
    assert found.skip_damaged
    assert (found.master, found.memory, found.conf) == ("local[1]", "1g", {"spark.sql.shuffle.partitions": "3"})
    assert [(view and view.name, sink) for view, sink in targets(found)] == [
        (None, PatchSink(folder / "quads")),
        ("a", TableSink(folder / "out/table")),
        ("a", JsonLinesSink(folder / "out/a.jsonl")),
        ("g", ChangesetsSink(folder / "out/g", compress=False)),
        ("g", SnapshotSink(folder / "out/g.nt")),
        ("g", EndpointSink("http://127.0.0.1/query", "http://127.0.0.1/update", NamedNode("urn:g"))),
    ]


def test_defaults(folder: Path) -> None:
    found = load_pipeline(write(folder, SOURCE + VIEW))
    assert (found.name, found.state, found.init, found.limit) == ("places", folder / "places.state", (), Limit())
    assert found.sinks == ()
    assert not found.skip_damaged


SINK = "[[view.sink]]\n"
MISTAKES = {
    "an unknown table": (SOURCE + VIEW + "[piepline]\n", r"toml:6: piepline: unknown key.*did you mean 'pipeline'\?"),
    "an unknown key": (SOURCE + "chagnes = 1\n" + VIEW, r"toml:3: source.chagnes: unknown.*did you mean 'changes'\?"),
    "a misspelt key": ('[source]\nchange = "a"\n' + VIEW, r"toml:2: source.change: unknown.*did you mean 'changes'\?"),
    "a misspelt table": (SOURCE.replace("e]", "es]") + VIEW, r"toml:1: sources: unknown key.*did you mean 'source'\?"),
    "nothing close": (
        SOURCE + "zzz = 1\n" + VIEW,
        r"toml:3: source.zzz: unknown.*known here: changes, init, poll, settle, skip_damaged",
    ),
    "no source": (
        VIEW,
        r"places.toml: source: the key 'changes' is missing: the path or the address of a change source",
    ),
    "a wrong type": ("[source]\nchanges = 1\n" + VIEW, r"toml:2: source.changes: expected a text, not a whole number"),
    "no such path": ('[source]\nchanges = "no"\n' + VIEW, r"toml:2: source.changes: no such file or folder: .*/no"),
    "no path": ('[source]\nchanges = ""\n' + VIEW, r"toml:2: source.changes: expected a path, not an empty text"),
    "nothing that fits": (SOURCE + 'init = "*.zz"\n' + VIEW, r"toml:3: source.init: no such file or folder: .*\*.zz"),
    "no function of the data": (
        SOURCE + VIEW.replace("{", "{ SERVICE <urn:x> {} ", 1),
        r"toml:5: view.text: the query of view 'a' cannot be maintained: .*SERVICE",
    ),
    "no such interest": (
        SOURCE + '[[view]]\nname = "a"\ninterest = "no.rq"\n',
        r"toml:5: view.interest: cannot read .*no.rq",
    ),
    "standard input": ('[source]\nchanges = "-"\n' + VIEW, r"toml:2: source.changes: .*standard input"),
    "a list of numbers": (SOURCE + "init = [1]\n" + VIEW, r"toml:3: source.init: expected a text or a list of texts"),
    "no changes at all": (SOURCE + VIEW + "[batch]\nchanges = 0\n", r"toml:7: batch.changes: .*from 1 on, not 0"),
    "neither true nor false": (SOURCE + "skip_damaged = 1\n" + VIEW, r"toml:3: source.skip_damaged: expected true or"),
    "a negative time": (SOURCE + "settle = -1\n" + VIEW, r"toml:3: source.settle: expected a number of seconds"),
    "a bad name": ('[pipeline]\nname = "a/b"\n' + SOURCE + VIEW, r"toml:2: pipeline.name: 'a/b' cannot be a name"),
    "no name": (SOURCE + '[[view]]\ntext = "ASK {}"\n', r"toml:3: view: the key 'name' is missing"),
    "two names": (SOURCE + VIEW + VIEW, r"toml:7: view.name: there are two views 'a'"),
    "no query": (
        SOURCE + '[[view]]\nname = "a"\n',
        r"toml:3: view: expected one of 'query', 'text', 'interest' and 'linkset'",
    ),
    "no such query": (SOURCE + '[[view]]\nname = "a"\nquery = "no.rq"\n', r"toml:5: view.query: cannot read .*no.rq"),
    "a view that is no table": (SOURCE + "view = 3\n", r"toml:3: source.view: unknown key"),
    "views that are no tables": ("view = [1]\n" + SOURCE, r"toml:1: view: expected tables, written as \[\[view\]\]"),
    "a bad query": (
        SOURCE + VIEW.replace("?s", "?s ?", 1),
        r"toml:5: view.text: the query of view 'a' cannot be .*1:1",
    ),
    "no kind": (SOURCE + VIEW + SINK, r"toml:6: view.sink: the key 'kind' is missing: one of table, changesets"),
    "an unknown kind": (SOURCE + VIEW + SINK + 'kind = "tabel"\n', r"toml:7: view.sink.kind: .*did you mean 'table'\?"),
    "no path of a sink": (SOURCE + VIEW + SINK + 'kind = "table"\n', r"toml:6: view.sink: the key 'path' is missing"),
    "rows as triples": (
        SOURCE + VIEW + SINK + 'kind = "endpoint"\nquery = "http://a"\n',
        r"toml:7: view.sink.kind: 'endpoint' takes triples only.*rows of a SELECT .* use CONSTRUCT",
    ),
    "quads as rows": (SOURCE + '[[sink]]\nkind = "jsonl"\npath = "x"\n', r"toml:4: sink.kind: quads have no results"),
    "no address": (SOURCE + GRAPH + SINK + 'kind = "endpoint"\nquery = "a"\n', r"toml:8: view.sink.query: .*http://"),
    "no IRI": (
        SOURCE + GRAPH + SINK + 'kind = "endpoint"\nquery = "http://a"\ngraph = "a b"\n',
        r"toml:9: view.sink.graph: expected an IRI, not 'a b'",
    ),
    "a key of the second sink of the second view": (
        SOURCE + VIEW + GRAPH + f'{SINK}kind = "table"\npath = "t"\n{SINK}kind = "table"\npath = "u"\nzip = true\n',
        r"toml:15: view.sink.zip: unknown key 'zip'",
    ),
    "one place for two": (
        SOURCE + VIEW + f'{SINK}kind = "table"\npath = "t"\n{SINK}kind = "jsonl"\npath = "t/x"\n',
        r"a sink at .*t/x collides with the sink of kind table at .*/t",
    ),
    "one graph for two": (
        SOURCE + GRAPH + f'{SINK}kind = "store"\npath = "t"\n{SINK}kind = "store"\npath = "t"\n',
        r"a sink at .*t collides with the sink of kind store at .*/t",
    ),
    "a graph of a whole store": (
        SOURCE
        + '[[sink]]\nkind = "store"\npath = "t"\n'
        + GRAPH
        + f'{SINK}kind = "store"\npath = "t"\ngraph = "urn:g"\n',
        r"a sink at .*t collides with the sink of kind store at .*/t",
    ),
    "rows in a store": (SOURCE + VIEW + SINK + 'kind = "store"\npath = "t"\n', r"'store' takes triples only"),
    "the place of the source": (
        SOURCE + '[[sink]]\nkind = "patch"\npath = "changes.rdfp"\n',
        r"collides with source.changes",
    ),
}


def test_graphs_of_one_database(folder: Path) -> None:
    graphs = "".join(f'{SINK}kind = "store"\npath = "db"\n{graph}' for graph in ("", 'graph = "urn:g"\n'))
    found = load_pipeline(write(folder, '[source]\nchanges = "http://localhost/x"\npoll = 1.5\n' + GRAPH + graphs))
    assert [sink for _, sink in targets(found)] == [
        StoreSink(folder / "db"),
        StoreSink(folder / "db", NamedNode("urn:g")),
    ]
    assert (found.changes, found.poll) == ("http://localhost/x", 1.5)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told(folder: Path, name: str) -> None:
    text, message = MISTAKES[name]
    with pytest.raises(PipelineInvalid, match=f"(?s){message}"):
        load_pipeline(write(folder, text))


def test_keys_in_texts_of_several_lines_are_none(folder: Path) -> None:
    text = SOURCE + '[[view]]\nname = "a"\ntext = """\nwrong = 1\n[batch]\nSELECT * {}"""\nwrong = 1\n'
    with pytest.raises(EvergraphError, match=r"toml:5: view.text"):
        load_pipeline(write(folder, text))
    text = text.replace("wrong = 1\n[batch]\n", "# wrong = 1\n# [batch]\n")
    with pytest.raises(PipelineInvalid, match=r"toml:9: view.wrong"):
        load_pipeline(write(folder, text))


def test_what_is_no_toml(folder: Path) -> None:
    with pytest.raises(SyntaxProblem, match=r"(?s)places.toml:2:\d+: .*\| name = "):
        load_pipeline(write(folder, "[pipeline]\nname = \n"))
    with pytest.raises(SyntaxProblem, match=r"places.toml:2: "):
        load_pipeline(write(folder, "[pipeline]\nx = [\n"))
    with pytest.raises(DataError, match="No such file"):
        load_pipeline(folder / "none.toml")
    (folder / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(DataError, match="byte 2 is not UTF-8"):
        load_pipeline(folder / "latin.toml")


def test_a_query_file_with_a_mistake_is_named(folder: Path) -> None:
    (folder / "a.rq").write_text("SELECT * {\n ?s ?p }")
    with pytest.raises(SyntaxProblem, match=r"a\.rq:2:\d+"):
        load_pipeline(write(folder, SOURCE + '[[view]]\nname = "a"\nquery = "a.rq"\n'))


def test_nothing_to_do(folder: Path) -> None:
    with pytest.raises(DataError, match="there is nothing to do"):
        load_pipeline(write(folder, SOURCE))
