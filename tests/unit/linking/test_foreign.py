"""Silk-LSL and LIMES files become definitions that find what they would have found."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import evergraph as eg
from evergraph.cli.app import app
from evergraph.errors import DataError, SyntaxProblem
from evergraph.linking.foreign import Converted, convert

SILK = r"""<Silk>
  <Prefixes>
    <Prefix id="owl" namespace="http://www.w3.org/2002/07/owl#"/>
    <Prefix id="a" namespace="http://a.example/"/>
    <Prefix id="b" namespace="http://b.example/"/>
  </Prefixes>
  <Interlinks><Interlink id="persons">
    <LinkType>owl:sameAs</LinkType>
    <SourceDataset dataSource="A" var="p"><RestrictTo>?p a a:Person .</RestrictTo></SourceDataset>
    <TargetDataset dataSource="B" var="q"><RestrictTo>?q a b:Person .</RestrictTo></TargetDataset>
    <LinkageRule>
      <Aggregate type="min">
        <Compare metric="levenshteinDistance" threshold="1">
          <TransformInput function="lowerCase"><Input path="?p/a:name"/></TransformInput>
          <TransformInput function="lowerCase"><Input path="?q/b:label"/></TransformInput>
        </Compare>
        <Aggregate type="max">
          <Compare metric="equality"><Input path="?p/a:born"/><Input path="?q/b:born"/></Compare>
          <Compare metric="jaro" threshold="0.1"><Input path="?p/a:town"/><Input path="?q/b:town"/></Compare>
        </Aggregate>
      </Aggregate>
    </LinkageRule>
  </Interlink></Interlinks>
</Silk>"""

LIMES = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE LIMES SYSTEM "limes.dtd">
<LIMES>
  <PREFIX><NAMESPACE>http://www.w3.org/2002/07/owl#</NAMESPACE><LABEL>owl</LABEL></PREFIX>
  <PREFIX><NAMESPACE>http://a.example/</NAMESPACE><LABEL>a</LABEL></PREFIX>
  <PREFIX><NAMESPACE>http://b.example/</NAMESPACE><LABEL>b</LABEL></PREFIX>
  <SOURCE><ID>A</ID><VAR>?x</VAR><RESTRICTION>?x a a:Person .</RESTRICTION>
    <PROPERTY>a:name AS nolang->lowercase RENAME name</PROPERTY><PROPERTY>a:born</PROPERTY></SOURCE>
  <TARGET><ID>B</ID><VAR>?y</VAR><RESTRICTION>?y a b:Person .</RESTRICTION>
    <PROPERTY>b:label AS lowercase RENAME name</PROPERTY><PROPERTY>b:born</PROPERTY></TARGET>
  <METRIC>AND(levenshtein(x.name,y.name)|0.5,exactmatch(x.a:born,y.b:born)|1.0)</METRIC>
  <ACCEPTANCE><THRESHOLD>0.5</THRESHOLD><FILE>a.nt</FILE><RELATION>owl:sameAs</RELATION></ACCEPTANCE>
</LIMES>"""

A = """@prefix a: <http://a.example/> .
a:1 a a:Person ; a:name "Tim Burton" ; a:born "1958" .
a:2 a a:Person ; a:name "JANE" ; a:born "1954" ; a:town "Rome" ."""
B = """@prefix b: <http://b.example/> .
b:1 a b:Person ; b:label "tim button" ; b:born "1958" .
b:2 a b:Person ; b:label "Jane" ; b:born "1950" ; b:town "Rome" .
b:3 a b:Person ; b:label "Tim" ; b:born "1958" ."""


def converted(folder: Path, text: str) -> Converted:
    (folder / "foreign.xml").write_text(text)
    return convert(folder / "foreign.xml")


def links(folder: Path, found: Converted) -> set[tuple[str, str]]:
    (folder / "a.ttl").write_text(A)
    (folder / "b.ttl").write_text(B)
    text = found.toml().replace('changes = "…" # a change source\n', "")
    for name in ("a.ttl", "b.ttl"):
        text = text.replace('init = "…" # RDF files', f'init = "{name}"', 1)
    (folder / "own.toml").write_text(text)
    (run,) = eg.link(folder / "own.toml")
    return {(source[-3:-1], target[-3:-1]) for source, target in run.added}


def test_silk(tmp_path: Path) -> None:
    found = converted(tmp_path, SILK)
    assert found.problems == []
    assert found.predicate == "http://www.w3.org/2002/07/owl#sameAs"
    assert links(tmp_path, found) == {("/1", "/1"), ("/2", "/2")}


def test_limes(tmp_path: Path) -> None:
    found = converted(tmp_path, LIMES)
    assert found.problems == []
    assert found.notes == ["LIMES' levenshtein was read as 1 / (1 + distance)"]
    assert links(tmp_path, found) == {("/1", "/1")}


@pytest.mark.parametrize(
    ("metric", "lines"),
    [
        ("jaccard(x.name,y.name)", ["combine = \"and\"", 'measure = "jaccard"', "min = 0.5"]),
        ("MAX(jaro(x.name,y.name),cosine(x.name,y.name)|0.7)", ["combine = \"or\"", "min = 0.5", "min = 0.7"]),
        ("ADD(0.6*trigrams(x.name,y.name),0.4*jaro(x.name,y.name))", ['combine = "sum"', "weight = 0.6", "min = 0"]),
        ("OR(AND(jaro(x.name,y.name)|0.9,exactmatch(x.a:born,y.b:born)|1),jaro(x.name,y.name)|0.95)", ["min = 0.95"]),
    ],
)  # fmt: skip
def test_metrics_of_limes(tmp_path: Path, metric: str, lines: list[str]) -> None:
    text = LIMES.replace("AND(levenshtein(x.name,y.name)|0.5,exactmatch(x.a:born,y.b:born)|1.0)", metric)
    found = converted(tmp_path, text)
    assert found.problems == []
    for line in lines:
        assert line in found.toml().splitlines()
    links(tmp_path, found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SILK.replace('metric="jaro"', 'metric="softjaccard"'), "metric=softjaccard"),
        (SILK.replace("lowerCase", "stem", 1), "function=stem"),
        (SILK.replace('type="min"', 'type="average"'), "type=average"),
        (SILK.replace("</LinkageRule>", '</LinkageRule><Filter limit="1"/>'), "limit=1"),
        (LIMES.replace("exactmatch", "hausdorff"), "METRIC hausdorff"),
        (LIMES.replace("AND(lev", "DIFF(lev"), "cannot be read"),
        (LIMES.replace("nolang->lowercase", "celsius"), "no transformation celsius"),
    ],
)
def test_what_cannot_be_expressed_is_listed(tmp_path: Path, text: str, problem: str) -> None:
    found = converted(tmp_path, text)
    assert len(found.problems) == 1
    assert problem in found.problems[0]
    result = CliRunner().invoke(app, ["link", str(tmp_path / "foreign.xml"), "--convert"])
    assert result.exit_code == 1
    assert problem in result.stderr


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="neither Silk-LSL nor LIMES"):
        converted(tmp_path, "<html/>")
    with pytest.raises(SyntaxProblem, match=r"foreign.xml:1:\d+: not XML"):
        converted(tmp_path, "<Silk><")
    with pytest.raises(DataError, match="No such file"):
        convert(tmp_path / "nothing.xml")
