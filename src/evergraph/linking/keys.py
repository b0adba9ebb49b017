"""Blocking keys: texts that two values must share if they are to match. They lose nothing.

Each scheme promises, for all values a and b that its measure holds to be within the threshold::

    probe(a) ∩ index(b) ≠ ∅

The values of one side are found in an index by ``index`` keys, those of the other are looked up by ``probe`` keys;
since all measures are symmetric, either side can be either. Rounding never loses a pair: what is computed in floating
point is widened by more than its error.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations, product
from typing import Any, Protocol
from zlib import crc32

from evergraph.linking.values import Point

EPSILON = 1e-9
LONG = 128
"""Of texts that are longer than this, not every letter is left out once."""

MOST_EDITS = 16
"""More edits than this leave pieces that are in most texts."""

MOST_KEYS = 100_000
"""A value that would have more keys than this is looked for among all that are about as large."""

_FAR = 2**40


class Keys(Protocol):
    """A scheme of blocking keys for values that are prepared for one measure."""

    def index(self, value: Any) -> Iterable[str]:
        """Return the keys under which a value is found."""

    def probe(self, value: Any) -> Iterable[str]:
        """Return the keys under which all values that match are found."""


class SameKeys:
    """Both sides have the same keys: those that a function gives."""

    def __init__(self, keys: Callable[[Any], Iterable[str]]) -> None:
        self.index = self.probe = keys


def equality() -> Keys:
    """Equal texts share themselves."""
    return SameKeys(lambda value: (value,))


def deletions() -> Keys:
    """Texts within one edit share a text that each becomes by leaving out at most one code point.

    A replacement leaves the same rest at its place; an insertion makes the shorter one a rest of the longer one.
    """

    def keys(text: str) -> list[str]:
        found = [text[:place] + text[place + 1 :] for place in range(len(text))]
        found.append(text)
        return found

    return SameKeys(keys)


class Sized:
    """Keys of values up to a size, and others for larger ones, of which the first would make too many.

    ``sizes`` gives the sizes that partners of a value may have.
    """

    def __init__(self, most: int, size: Callable[[Any], int], sizes: Callable[[int], range], few: Keys, rest: Keys):
        self._most = most
        self._size = size
        self._sizes = sizes
        self._few = few
        self._rest = rest
        self._plain = bisect_right(range(most + 1), most, key=lambda size: sizes(size).stop - 1) - 1

    def index(self, value: Any) -> Iterable[str]:
        """Return the keys that values of this size have."""
        return (self._few if self._size(value) <= self._most else self._rest).index(value)

    def probe(self, value: Any) -> Iterable[str]:
        """Return the keys of all sizes that partners may have."""
        size = self._size(value)
        if size <= self._plain:
            return self._few.probe(value)
        if self._sizes(size).start > self._most:
            return self._rest.probe(value)
        return chain(self._few.probe(value), self._rest.probe(value))


class Magnitudes:
    """Values of sizes with as many binary digits: all that is said of very large ones."""

    def __init__(self, size: Callable[[Any], int], sizes: Callable[[int], range]) -> None:
        self._size = size
        self._sizes = sizes

    def index(self, value: Any) -> tuple[str, ...]:
        """Return the magnitude."""
        return (f"~{self._size(value).bit_length()}",)

    def probe(self, value: Any) -> list[str]:
        """Return the magnitudes that partners may have."""
        sizes = self._sizes(self._size(value))
        return [f"~{digits}" for digits in range(sizes.start.bit_length(), (sizes.stop - 1).bit_length() + 1)]


def _bounded(
    keys: Keys, size: Callable[[Any], int], sizes: Callable[[int], range], count: Callable[[int], float]
) -> Keys:
    """Leave to magnitudes what would have more than `MOST_KEYS`; ``count`` says how many keys a size means."""
    most = 8
    while most < _FAR and count(2 * most) <= MOST_KEYS:
        most *= 2
    return Sized(most, size, sizes, keys, Magnitudes(size, sizes))


class Segments:
    """Texts within d edits: cut one into d + 1 pieces; at least one piece stands whole in the other (pigeonhole).

    The pieces of a text of length L are keys with L and their number. Who looks for partners of length L takes the
    parts that can be the piece with that number: before it at most as many insertions and deletions as pieces that
    were broken, and likewise behind it (Li, Deng, Wang, Feng: Pass-Join, VLDB 2011, multi-match-aware selection).
    ``limit`` is the greatest distance of a text of length L to any partner, ``lengths`` the lengths of partners.
    """

    def __init__(self, limit: Callable[[int], int], lengths: Callable[[int], range]) -> None:
        self._limit = limit
        self._lengths = lengths

    def index(self, text: str) -> Iterator[str]:
        """Return the pieces."""
        length = len(text)
        for number, (start, size) in enumerate(_pieces(length, self._limit(length) + 1)):
            yield f"{length}.{number}.{text[start : start + size]}"

    def probe(self, text: str) -> set[str]:
        """Return the parts that may be a piece of a partner."""
        found = set()
        for length in self._lengths(len(text)):
            limit = self._limit(length)
            longer = len(text) - length
            for number, (start, size) in enumerate(_pieces(length, limit + 1)):
                left, right = number, limit - number
                first = max(0, start - left, start + longer - right)
                last = min(len(text) - size, start + left, start + longer + right)
                for place in range(first, last + 1):
                    found.add(f"{length}.{number}.{text[place : place + size]}")
        return found


def edits(limit: int) -> Keys | None:
    """Return the keys for texts within so many insertions, deletions and replacements."""

    def lengths(length: int) -> range:
        return range(max(1, length - limit), length + limit + 1)

    if limit == 0:
        return equality()
    if limit > MOST_EDITS:
        return None
    segments = Segments(lambda length: limit, lengths)
    return Sized(LONG, len, lengths, deletions(), segments) if limit == 1 else segments


def relative_edits(least: float) -> Keys | None:
    """Return the keys for texts with 1 - edits / length of the longer one ≥ ``least``."""
    if least <= 0:
        return None
    allowed = 1 - least + EPSILON

    def lengths(length: int) -> range:
        return range(max(1, math.ceil(length * least - EPSILON)), math.floor(length / least + EPSILON) + 1)

    def limit(length: int) -> int:
        return math.floor(allowed * (lengths(length).stop - 1) + EPSILON)

    def count(length: int) -> float:
        return len(lengths(length)) * (limit(length) + 1) ** 2 / 2

    return _bounded(Segments(limit, lengths), len, lengths, count)


class Prefixes:
    """Sets that share many members share some of the first ones, in any order that is the same for both.

    If sets of x and y members share at least α, then their first x - α + ℓ and y - α + ℓ members share at least ℓ; the
    keys are ``together`` = ℓ members taken at a time, and the size of the set that is indexed.
    ``overlap`` gives a lower bound for α, growing in both sizes; ``sizes`` the sizes that partners may have.
    """

    def __init__(
        self,
        members: Callable[[Any], Iterable[str]],
        order: Callable[[str], Any],
        overlap: Callable[[int, int], float],
        sizes: Callable[[int], range],
        together: int = 1,
    ) -> None:
        self._members = members
        self._order = order
        self._overlap = overlap
        self._sizes = sizes
        self._together = together

    def index(self, value: Any) -> Iterator[str]:
        """Return the first members, taken together, with the size of the set."""
        members = sorted(self._members(value), key=self._order)
        size = len(members)
        least, together = self._least(size)
        yield from _joined(size, members[: size - least + together], together)

    def probe(self, value: Any) -> Iterator[str]:
        """Return the same for each size that a partner may have."""
        members = sorted(self._members(value), key=self._order)
        size = len(members)
        for other in self._sizes(size):
            shared = max(1, math.ceil(self._overlap(size, other) - EPSILON))
            _, together = self._least(other)
            yield from _joined(other, members[: size - shared + together], together)

    def count(self, size: int) -> float:
        """Tell about how many keys a set of some size looks for."""
        least, together = self._least(size)
        return len(self._sizes(size)) * math.comb(size - least + together, together)

    def _least(self, size: int) -> tuple[int, int]:
        """Return the smallest overlap with any partner, and how many members make a key."""
        smallest = self._sizes(size).start
        least = max(1, math.ceil(self._overlap(smallest, size) - EPSILON))
        return least, min(self._together, least)


def token_prefixes(overlap: Callable[[int, int], float], ratio: float) -> Keys | None:
    """Return the keys for sets, where the smaller one has at least ``ratio`` as many members as the other."""
    if ratio <= 0:
        return None
    sizes = _ratio_range(ratio)
    keys = Prefixes(iter, _rare_first, overlap, sizes)
    return _bounded(keys, len, sizes, keys.count)


def jaro(least: float) -> Keys | None:
    """Return the keys for texts with a Jaro similarity ≥ ``least``, which must be above 2/3.

    With m matching code points, m/x + m/y + 1 ≥ 3 · similarity; m is at most what the multisets of code points share.
    """
    if 3 * least - 2 <= EPSILON:
        return None
    sizes = _ratio_range(3 * least - 2)
    keys = Prefixes(_numbered, _rare_letters_first, lambda x, y: (3 * least - 1) * x * y / (x + y), sizes, 3)
    return _bounded(keys, len, sizes, keys.count)


def jaro_winkler(least: float) -> Keys | None:
    """Return the keys for texts with a Jaro-Winkler similarity ≥ ``least``, which must be above 0.7.

    With l of the first four code points in common, jw = j + l/10 · (1 - j), and only if j > 0.7. So either all four are
    the same, which is a key, or j ≥ (jw - 0.3) / 0.7.
    """
    if least <= 0.7:
        return None
    inner = jaro(max(0.7, (least - 0.3) / 0.7))
    assert inner is not None
    return Beginnings(inner)


class Beginnings:
    """The first four code points, besides other keys."""

    def __init__(self, inner: Keys) -> None:
        self._inner = inner

    def index(self, text: str) -> Iterator[str]:
        """Return the keys under which a text is found."""
        if len(text) >= 4:
            yield f"^{text[:4]}"
        yield from self._inner.index(text)

    def probe(self, text: str) -> Iterator[str]:
        """Return the keys to look for."""
        if len(text) >= 4:
            yield f"^{text[:4]}"
        yield from self._inner.probe(text)


class AnyToken:
    """Some token of one side has a key in common with some token of the other."""

    def __init__(self, inner: Keys) -> None:
        self._inner = inner

    def index(self, value: Iterable[str]) -> set[str]:
        """Return the keys of all tokens."""
        return {key for token in value for key in self._inner.index(token)}

    def probe(self, value: Iterable[str]) -> set[str]:
        """Return the keys to look for, of all tokens."""
        return {key for token in value for key in self._inner.probe(token)}


class Buckets:
    """Numbers within a distance, in any number of dimensions: buckets twice as wide, and those that are in reach."""

    def __init__(self, distance: float) -> None:
        self._reach = distance * (1 + 1e-6) + 1e-6
        self._width = 2 * self._reach

    def index(self, value: float | Point) -> Iterator[str]:
        """Return the bucket of the number."""
        axes = value if isinstance(value, tuple) else (value,)
        yield ".".join(str(self._bucket(one)) for one in axes)

    def probe(self, value: float | Point) -> Iterator[str]:
        """Return the buckets in reach."""
        axes = value if isinstance(value, tuple) else (value,)
        ranges = [range(self._bucket(one - self._reach), self._bucket(one + self._reach) + 1) for one in axes]
        return (".".join(map(str, numbers)) for numbers in product(*ranges))

    def _bucket(self, value: float) -> int:
        # Far out, where floating point is coarser than the buckets, all are one.
        return max(-_FAR, min(_FAR, math.floor(value / self._width)))


def _pieces(length: int, count: int) -> Iterator[tuple[int, int]]:
    """Cut a length into pieces of nearly the same size; return where they start and how long they are."""
    size, longer = divmod(length, count)
    start = 0
    for number in range(count):
        this = size + (number >= count - longer)
        yield start, this
        start += this


def _ratio_range(ratio: float) -> Callable[[int], range]:
    return lambda size: range(max(1, math.ceil(size * ratio - EPSILON)), math.floor(size / ratio + EPSILON) + 1)


def _joined(size: int, members: list[str], together: int) -> Iterator[str]:
    if together == 1:
        for member in members:
            yield f"{size}.{member}"
    else:
        for some in combinations(members, together):
            yield f"{size}.{''.join(some)}"


def _rare_first(member: str) -> tuple[int, int, str]:
    """Order tokens: long ones first, since they tend to be rare, and equally long ones at random."""
    return -len(member), crc32(member.encode("utf-8", "surrogatepass")), member


def _numbered(text: str) -> list[str]:
    """Return the code points of a text as a set, by numbering those that are the same."""
    counts: dict[str, int] = {}
    members = []
    for sign in text:
        number = counts.get(sign, 0)
        counts[sign] = number + 1
        members.append(f"{sign}{number}")
    return members


_COMMON = {letter: place for place, letter in enumerate("zqjxkvbywgpfmucdlhrsnioate ", 1)}


def _rare_letters_first(member: str) -> tuple[int, str]:
    return _COMMON.get(member[0].lower(), 0) * 10 - int(member[1:]), member
