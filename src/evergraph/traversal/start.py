"""``evergraph.traverse``: what is asked for, checked, and a traversal made of it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from evergraph.errors import UsageError
from evergraph.plan.lower import Lowering
from evergraph.plan.queries import lower_query
from evergraph.sparql.algebra import Query
from evergraph.sparql.parser import parse_query
from evergraph.terms import NamedNode
from evergraph.traversal.iris import document_url
from evergraph.traversal.links import Strategy, query_iris
from evergraph.traversal.options import Limits, Manners
from evergraph.traversal.traversal import Traversal

SPARK_BATCH = 1_000
"""Documents that are one change on Spark, unless told."""


def traverse(
    query: Query | str,
    seeds: Iterable[str] = (),
    *,
    strategy: Strategy | str = Strategy.PATTERNS,
    vocabulary: bool = False,
    allow: Iterable[str] = (),
    limits: Limits | None = None,
    manners: Manners | None = None,
    cache: Path | str | None = None,
    follow: bool = False,
    refresh: float = 60.0,
    batch: int | None = None,
    engine: str = "local",
    spark_master: str | None = None,
) -> Traversal:
    """Answer a query by following links; iterate over what this returns.

    :param seeds: IRIs to start from, besides those of the query.
    :param strategy: which links to follow: of the ``query``, in ``solutions``, where ``patterns`` match, or ``all``.
    :param vocabulary: follow predicates and classes, too.
    :param allow: hosts that may be at loopback, private or link-local addresses.
    :param cache: a folder for answers of servers; a traversal that was interrupted goes on from there.
    :param follow: keep the result fresh: ask for documents again when they may have changed.
    :param refresh: with ``follow``, the least number of seconds until a document is asked for again.
    :param batch: take in up to so many documents at once, if they are there; default: 1, and 1,000 on Spark.
    :param engine: ``local``, or ``spark`` for crawls whose state does not fit into memory.
    """
    if isinstance(query, str):
        query = parse_query(query)
    try:
        chosen = Strategy(strategy)
    except ValueError:
        raise UsageError(f"no strategy is called {strategy!r}", hint=f"there are {', '.join(Strategy)}") from None
    if engine not in ("local", "spark"):
        raise UsageError(f"no engine is called {engine!r}", hint="there are local and spark")
    lower_query(query, Lowering(query.dataset))  # says what cannot be maintained, before anything is asked
    if batch is None:
        batch = 1 if engine == "local" else SPARK_BATCH
    if batch < 1 or refresh <= 0:
        raise UsageError("a batch has at least one document, and a refresh takes some time", hint="use numbers above 0")
    manners = manners or Manners()
    manners = replace(manners, allowed=manners.allowed | frozenset(allow))
    if limits is None:
        limits = Limits(seconds=None) if follow else Limits()
    return Traversal(
        query,
        _seeds(query, seeds, vocabulary),
        strategy=chosen,
        vocabulary=vocabulary,
        limits=limits,
        manners=manners,
        cache=None if cache is None else Path(cache),
        follow=follow,
        refresh=refresh,
        batch=batch,
        spark=engine == "spark",
        spark_master=spark_master,
    )


def _seeds(query: Query, given: Iterable[str], vocabulary: bool) -> tuple[NamedNode, ...]:
    """Return what to start from: the IRIs that are given, and those of the query that have an address."""
    found: dict[NamedNode, None] = {}
    for text in given:
        if document_url(text) is None:
            raise UsageError(f"{text!r} is no IRI that can be asked", hint="begin seeds with http:// or https://")
        try:
            found[NamedNode(text)] = None
        except ValueError as error:
            raise UsageError(f"{text!r} is no IRI: {error}", hint="percent-encode what is not allowed") from None
    found |= dict.fromkeys(iri for iri in query_iris(query, vocabulary=vocabulary) if document_url(iri.value))
    if not found:
        hint = "give --seed IRI, or --vocabulary to start from predicates and classes"
        raise UsageError("the query has no IRI to start from", hint=hint)
    return tuple(found)
