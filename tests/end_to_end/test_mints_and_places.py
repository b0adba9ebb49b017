"""Nomisma mints and Pleiades places over both real streams in step: the links are those from scratch all the way."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.support.mints import definition

from evergraph.delta import Request
from evergraph.linking.definition import Definition, load_linkset
from evergraph.linking.oracle import match
from evergraph.ports import SourceChange
from evergraph.sources import open_source
from evergraph.terms import Quad
from evergraph.views.linksets import CatalogueView, Linkset
from evergraph.views.linksets.outputs import Quality, quality

_PLACE = re.compile(rb"places/(\d+)")
_GOLD = "http://www.w3.org/2004/02/skos/core#closeMatch"


def linkset(of: Definition) -> Linkset[CatalogueView]:
    return Linkset(of.rule, CatalogueView(of.source.catalogue), CatalogueView(of.target.catalogue), one_to_one=True)


def in_step(sources: list[list[SourceChange]], points: int) -> Iterator[list[list[SourceChange]]]:
    """Cut both streams into the same number of parts, by their places in the streams."""
    for point in range(points):
        yield [part[len(part) * point // points : len(part) * (point + 1) // points] for part in sources]


class Gold:
    """Nomisma's own links to Pleiades, as they change."""

    def __init__(self) -> None:
        self.links: set[tuple[str, str]] = set()

    def take(self, request: Request) -> None:
        for quads, change in ((request.removed, self.links.discard), (request.added, self.links.add)):
            for quad in quads:
                if quad.predicate.value == _GOLD and "pleiades.stoa.org/places/" in str(quad.object):
                    change((str(quad.subject), str(quad.object)))

    def judge(self, links: set[tuple[str, str]], there: set[str]) -> tuple[Quality, Quality]:
        """Compare all links, and those of mints for which there is an answer."""
        known = {pair for pair in self.links if pair[0] in there}
        judged = {source for source, _ in known}
        return quality(links, known), quality({pair for pair in links if pair[0] in judged}, known)


def follow(
    of: Definition, sources: list[list[SourceChange]], points: int
) -> tuple[Linkset[CatalogueView], Gold, list[Quality]]:
    """Follow both streams, and compare with a run from scratch, and some of all pairs, at every point."""
    maintained, gold, found = linkset(of), Gold(), []
    states: tuple[set[Quad], set[Quad]] = (set(), set())
    for parts in in_step(sources, points):
        for view, state, part in zip(maintained.views, states, parts, strict=True):
            for change in part:
                state -= change.request.removed
                state |= change.request.added
                view.take(view.exact(change.request))
                gold.take(change.request)
        maintained.maintain()
        scratch = linkset(of)
        for old, new, state in zip(maintained.views, scratch.views, states, strict=True):
            new.take(new.exact(Request(added=frozenset(state))))
            assert new.resources() == old.resources()
        scratch.maintain()
        assert maintained.candidates.scores == scratch.candidates.scores
        assert maintained.links == scratch.links
        check_some_pairs(maintained)
        found.append(gold.judge(set(maintained.links), set(maintained.views[0].resources()))[1])
    return maintained, gold, found


def check_some_pairs(maintained: Linkset[CatalogueView], count: int = 2) -> None:
    """Compare a few mints with all places, by the definition."""
    sources, targets = (view.resources() for view in maintained.views)
    few = {name: texts for name, texts in sources.items() if len(texts[0]) < 8}
    for name in Random(1).sample(sorted(few), min(count, len(few))):
        for other, texts in Random(2).sample(sorted(targets.items()), min(300, len(targets))):
            expected = match(maintained.rule.root, sources[name], texts)
            assert maintained.candidates.scores.get((name, other)) == expected


def _is_kept(line: bytes) -> bool:
    place = _PLACE.search(line)
    return place is not None and int(place[1]) % 100 == 0


def test_the_views_change_exactly_as_from_scratch_on_a_part_of_the_streams(shared: Path, tmp_path: Path) -> None:
    """Every hundredth place, and the first changesets of both streams."""
    nomisma, pleiades = shared / "data" / "nomisma", shared / "data" / "pleiades"
    if not pleiades.is_dir():
        pytest.skip("needs the streams of nomisma and pleiades in `shared/data`")
    few = tmp_path / "pleiades"
    files = sorted(pleiades.rglob("*.nt.gz"))[:40]
    for file in files:
        lines = [line for line in gzip.decompress(file.read_bytes()).splitlines(keepends=True) if _is_kept(line)]
        if lines:
            target = few / file.relative_to(pleiades)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.compress(b"".join(lines)))
    (tmp_path / "mints.toml").write_text(definition(nomisma, few))
    of = load_linkset(tmp_path / "mints.toml")
    mints = []
    for change in open_source(nomisma).changes():
        mints.append(change)
        if change.sequence >= 30:
            break
    maintained, _, found = follow(of, [mints, list(open_source(few).changes())], 3)
    assert len(maintained.links) > 2
    assert found[-1].precision > 0.5


@pytest.mark.long
def test_both_streams_to_their_end(shared: Path, tmp_path: Path) -> None:
    """Twenty points; and the rule is better than "same name within 5 km" in precision and in recall."""
    nomisma, pleiades = shared / "data" / "nomisma", shared / "data" / "pleiades"
    sources = [list(open_source(folder).changes()) for folder in (nomisma, pleiades)]
    (tmp_path / "mints.toml").write_text(definition(nomisma, pleiades))
    maintained, gold, found = follow(load_linkset(tmp_path / "mints.toml"), sources, 20)
    (tmp_path / "baseline.toml").write_text(definition(nomisma, pleiades, baseline=True))
    plain = linkset(load_linkset(tmp_path / "baseline.toml"))
    for old, new in zip(maintained.views, plain.views, strict=True):
        new._triples, new._stamps = old._triples, dict.fromkeys(old._triples, 1)
    plain.maintain()
    baseline = gold.judge(set(plain.links), set(plain.views[0].resources()))
    better = gold.judge(set(maintained.links), set(maintained.views[0].resources()))
    print("same name within 5 km, one to one: all, judged", [one.report() for one in baseline])  # noqa: T201
    print("three alternatives, one to one: all, judged", [one.report() for one in better])  # noqa: T201
    assert found[-1].precision >= baseline[1].precision
    assert found[-1].recall > baseline[1].recall + 0.1
    assert found[-1].f1 > 0.85
