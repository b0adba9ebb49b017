"""Matching on Spark: the blocking join as DataFrames, comparisons in Arrow batches.

Each side is a table of resources with their texts. Keys are computed in Arrow batches, as rows of key and resource;
pairs that share a key are an equi-join, each pair once; a second pass in Arrow batches compares them. A key that many
resources of the indexed side have, as a sample of them tells, is spread: they are dealt out to several parts, and who
looks for the key looks in all of them. So no task gets more than a bounded share of any key.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evergraph.linking.blocking import Blocking, Keyring
from evergraph.linking.matching import Matcher
from evergraph.linking.oracle import Links
from evergraph.linking.rules import Entity, Rule, Texts

SKEWED = 2_000
"""A key that more resources than this have is spread, so many to a part."""

SAMPLED = 16
"""How common keys are is told by one of so many resources."""

SMALL = 2_000
"""Up to so many resources are matched on the spot."""

FEW = 20_000
"""The keys of up to so many resources go to all tasks, so that those of the other side need not move."""

_BATCH = 4_096
_KEYS = "key string, name string"
_FOUND = "source string, target string, score double"


class SparkMatcher(Matcher):
    """A matcher whose large jobs are done by Spark; small ones need no cluster."""

    def __init__(self, rule: Rule, spark: SparkSession) -> None:
        super().__init__(rule)
        self._spark = spark

    def _found(self, side: int, entities: Mapping[str, Entity]) -> Links:
        if self._planned == (-1, -1):
            self.plan()
        others = self._halves[1 - side].entities
        if self._is_small(side, len(entities), len(others)):
            return super()._found(side, entities)
        if not entities or not others:
            return {}
        probing, indexed = (table(self._spark, _texts(half)) for half in (entities, others))
        few = len(entities) <= FEW
        found = matched(probing, indexed, self.rule, self.blocking, source_probes=side == 0, few=few)
        rows = found.toArrow().to_pydict()
        return {
            (source, target): score
            for source, target, score in zip(rows["source"], rows["target"], rows["score"], strict=True)
        }

    def _is_small(self, side: int, probing: int, others: int) -> bool:
        """Tell whether Spark would take longer to begin than this process to end."""
        if self.blocking is None:
            return probing * others <= SMALL * SMALL
        return probing <= SMALL and (others <= 10 * SMALL or self.has_index(1 - side))


def _texts(entities: Mapping[str, Entity]) -> dict[str, Texts]:
    return {name: texts for name, (texts, _) in entities.items()}


def table(spark: SparkSession, resources: Mapping[str, Texts]) -> DataFrame:
    """Make a table of resources."""
    columns = [pa.array(list(resources)), pa.array([json.dumps(texts) for texts in resources.values()], pa.string())]
    rows = spark.createDataFrame(pa.Table.from_arrays(columns, names=["name", "texts"]))
    return rows.repartition(spark.sparkContext.defaultParallelism * 2, "name")


def matched(
    probing: DataFrame,
    indexed: DataFrame,
    rule: Rule,
    blocking: Blocking | None,
    *,
    source_probes: bool = True,
    few: bool = False,
) -> DataFrame:
    """Return all links between two tables of resources: source, target, score; ``few`` is about those that probe."""
    if blocking is None:
        pairs = probing.select(sf.col("name").alias("one")).crossJoin(indexed.select(sf.col("name").alias("other")))
    else:
        pairs = candidates(probing, indexed, rule, blocking, source_probes=source_probes, few=few)
    first = probing.select(sf.col("name").alias("one"), sf.col("texts").alias("one_texts"))
    second = indexed.select(sf.col("name").alias("other"), sf.col("texts").alias("other_texts"))
    full = pairs.join(first, "one").join(second, "other")
    return full.mapInArrow(partial(_compared, rule, source_probes), _FOUND)


def candidates(
    probing: DataFrame,
    indexed: DataFrame,
    rule: Rule,
    blocking: Blocking,
    *,
    source_probes: bool = True,
    few: bool = False,
) -> DataFrame:
    """Return the pairs that share a key, each once, as columns ``one`` (of those that probe) and ``other``."""
    looked = _hashed(probing.mapInArrow(partial(_keys, rule, blocking, source_probes, True), _KEYS))
    index = partial(_keys, rule, blocking, not source_probes, False)
    found = _hashed(indexed.mapInArrow(index, _KEYS))
    if few:
        ones = sf.broadcast(looked.withColumnRenamed("name", "one"))
        return found.withColumnRenamed("name", "other").join(ones, "key").select("one", "other").distinct()
    some = _hashed(indexed.where(sf.pmod(sf.xxhash64("name"), sf.lit(SAMPLED)) == 0).mapInArrow(index, _KEYS))
    counts = some.groupBy("key").agg((sf.count("*") * SAMPLED).alias("count")).where(sf.col("count") > SKEWED)
    parts = sf.broadcast(counts.select("key", sf.ceil(sf.col("count") / SKEWED).cast("int").alias("parts")))
    one_part = sf.coalesce(sf.col("parts"), sf.lit(1))
    everywhere = looked.join(parts, "key", "left").select(
        "key", sf.col("name").alias("one"), sf.explode(sf.sequence(sf.lit(0), one_part - 1)).alias("part")
    )
    dealt = found.join(parts, "key", "left").select(
        "key", sf.col("name").alias("other"), sf.pmod(sf.hash("name"), one_part).alias("part")
    )
    return everywhere.join(dealt, ["key", "part"]).select("one", "other").distinct()


def _hashed(keys: DataFrame) -> DataFrame:
    """Make numbers of keys, which are shorter; those of two keys may be the same, and then a pair more is compared."""
    return keys.select(sf.xxhash64("key").alias("key"), "name")


def _keys(
    rule: Rule, blocking: Blocking, source: bool, probe: bool, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    keyring = Keyring(rule)
    functions = [keyring.probe(block) if probe else keyring.index(block) for block in blocking]
    for batch in batches:
        keys: list[str] = []
        names: list[str] = []
        for name, texts in zip(*(column.to_pylist() for column in batch.columns[:2]), strict=True):
            prepared = rule.prepare(_read(texts), source=source)
            for number, function in enumerate(functions):
                several = {f"{number}|{key}" for key in function(prepared)}
                keys += several
                names += [name] * len(several)
        yield pa.RecordBatch.from_arrays([pa.array(keys, pa.string()), pa.array(names, pa.string())], ["key", "name"])


def _compared(rule: Rule, source_first: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    known: tuple[dict[str, Entity], dict[str, Entity]] = ({}, {})

    def entity(place: int, name: str, texts: str) -> Entity:
        cache = known[place]
        found = cache.get(name)
        if found is None:
            if len(cache) > _BATCH:
                cache.clear()
            read = _read(texts)
            found = cache[name] = read, rule.prepare(read, source=(place == 0) == source_first)
        return found

    for batch in batches:
        columns = batch.to_pydict()
        rows = zip(columns["one"], columns["other"], columns["one_texts"], columns["other_texts"], strict=True)
        found: list[tuple[str, str, float]] = []
        for one, other, one_texts, other_texts in rows:
            first, second = entity(0, one, one_texts), entity(1, other, other_texts)
            score = rule.match(first, second) if source_first else rule.match(second, first)
            if score is not None:
                found.append((one, other, score) if source_first else (other, one, score))
        sides = [pa.array([row[place] for row in found], pa.string()) for place in (0, 1)]
        scores = pa.array([row[2] for row in found], pa.float64())
        yield pa.RecordBatch.from_arrays([*sides, scores], ["source", "target", "score"])


def _read(texts: str) -> Texts:
    return tuple(tuple(several) for several in json.loads(texts))
