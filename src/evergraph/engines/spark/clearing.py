"""Changes that clear: of some subjects, or of an entity of Wikidata, everything goes, whatever there is.

Only the table of quads knows what that is. A change that clears is the first of its batch, so that what it refers to is
what the table holds. Changesets and events are about triples: named graphs are left alone.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evergraph.engines.spark.frames import WEIGHT
from evergraph.engines.spark.rows import QUAD
from evergraph.sources.feeds.model import ADDED, CLEARED, FORGOTTEN, REMOVED
from evergraph.sources.wikidata import ABOUT, DOCUMENT, ENTITY

SEQUENCE = "sequence"


def without_marks(requested: DataFrame, quads: DataFrame) -> DataFrame:
    """Put the removal of what is cleared in the place of the rows that ask for it."""
    triples = quads.where(sf.col("graph") == "").select(*QUAD)
    marks = requested.where(sf.col(WEIGHT).isin(CLEARED, FORGOTTEN)).select("subject", SEQUENCE, WEIGHT).distinct()
    marks = marks.localCheckpoint()
    cleared = triples.join(marks.where(sf.col(WEIGHT) == CLEARED).drop(WEIGHT), "subject")
    asked = requested.where(sf.col(WEIGHT).isin(ADDED, REMOVED))
    gone = cleared.select(*QUAD, SEQUENCE, sf.lit(REMOVED).cast("long").alias(WEIGHT))
    for name, sequence in marks.where(sf.col(WEIGHT) == FORGOTTEN).select("subject", SEQUENCE).limit(1).collect():
        about = triples.where((sf.col("predicate") == str(ABOUT)) & (sf.col("object") == name)).select("subject")
        own = triples.where(owned_by(sf.col("subject"), name))
        others = triples.join(about.distinct(), "subject", "left_semi")
        marked = {SEQUENCE: sf.lit(sequence), WEIGHT: sf.lit(REMOVED).cast("long")}
        gone = gone.unionByName(own.unionByName(others).withColumns(marked))
    return asked.unionByName(gone)


def owned_by(subject: Column, name: str) -> Column:
    """Test subjects as `evergraph.sources.wikidata.Forgotten.owns` does; ``name`` is the entity, as a row has it."""
    entity = name.removeprefix(f"<{ENTITY}").removesuffix(">")
    rest = sf.upper(sf.regexp_replace(sf.substring(subject, len(ENTITY) + 2, 2**31 - 1), "^statement/", ""))
    document = sf.regexp_replace(subject, r"^<[^>]*?://(www\.)?", "")
    return sf.when(subject.startswith(f"<{ENTITY}"), (rest == f"{entity}>") | rest.startswith(f"{entity}-")).otherwise(
        document == f"{DOCUMENT}{entity}>"
    )
