"""Whole views: those that need too much for one process are left to Spark."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyoxigraph import RdfFormat
from tests.support.engines import BothEngines

from evergraph.delta import Request
from evergraph.engines.spark import whole
from evergraph.engines.spark.costs import Way
from evergraph.rdfio import parse_quads
from evergraph.sparql.parser import parse_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_needs_too_much_is_left_to_spark(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "_MOST_ENTRIES", 3)
    both = BothEngines(
        spark, tmp_path / "quads", {"pairs": parse_query("SELECT * { ?a <urn:p> ?b . ?c <urn:q> ?d }")}, Way.WHOLE
    )
    lines = [f"<urn:{number}> <urn:{'pq'[number % 2]}> <urn:o> .\n" for number in range(8)]
    quads = [frozenset(parse_quads("".join(some), RdfFormat.N_TRIPLES)) for some in (lines[:6], lines[6:], lines[:2])]
    both.check([Request(added=quads[0])], 1)
    both.check([Request(added=quads[1], removed=quads[2])], 2)
    both.check_initial()
