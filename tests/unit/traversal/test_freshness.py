"""How long answers are good, and when servers may be asked again."""

import pytest

from evergraph.traversal.freshness import directives, fresh_until, may_store, retry_after, validators

DATE = "Mon, 16 Nov 2026 10:00:00 GMT"
NOW = 1_794_823_200.0

CASES: list[tuple[dict[str, str], float | None]] = [
    ({}, None),
    ({"cache-control": "max-age=60"}, 60),
    ({"cache-control": "Max-Age=60, public"}, 60),
    ({"cache-control": "max-age=60", "age": "50"}, 10),
    ({"cache-control": "max-age=60", "age": "500"}, 0),
    ({"cache-control": 'max-age="60"'}, 60),
    ({"cache-control": "max-age=soon"}, 0),
    ({"cache-control": "max-age=" + "9" * 40}, 2**31),
    ({"cache-control": "no-cache, max-age=60"}, 0),
    ({"cache-control": "no-store"}, 0),
    ({"cache-control": "max-age=60", "vary": "*"}, 0),
    ({"cache-control": "max-age=60", "vary": "Accept"}, 60),
    ({"expires": "Mon, 16 Nov 2026 10:01:00 GMT", "date": DATE}, 60),
    ({"expires": "Mon, 16 Nov 2026 09:01:00 GMT", "date": DATE}, 0),
    ({"expires": "0", "date": DATE}, 0),
    ({"expires": "Mon, 16 Nov 2026 10:01:00 GMT", "cache-control": "max-age=5"}, 5),
    ({"last-modified": "Mon, 16 Nov 2026 09:00:00 GMT", "date": DATE}, 360),
    ({"last-modified": "Mon, 16 Nov 2016 09:00:00 GMT", "date": DATE}, 86_400),
    ({"last-modified": "yesterday"}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), CASES, ids=[str(headers) for headers, _ in CASES])
def test_fresh_until(headers: dict[str, str], seconds: float | None) -> None:
    until = fresh_until(headers, NOW)
    assert (None if until is None else round(until - NOW)) == seconds


def test_directives() -> None:
    assert directives({"cache-control": " Private , max-age=5,,"}) == {"private": "", "max-age": "5"}
    assert may_store({})
    assert not may_store({"cache-control": "private, No-Store"})
    asked = validators({"etag": '"x"', "last-modified": DATE})
    assert asked == {"If-None-Match": '"x"', "If-Modified-Since": DATE}
    assert validators({}) == {}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7), (DATE, 0), ("Mon, 16 Nov 2026 10:00:30 GMT", 30), ("", None), ("soon", None), ("-1", None)],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}, NOW) == seconds
