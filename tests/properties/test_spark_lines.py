"""Lines are read by two ways at once, and always as pyoxigraph alone would read them."""

from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse
from tests.support.rdf_strategies import quads

from evergraph.engines.spark.lines import parse_lines
from evergraph.engines.spark.rows import row_of

_words = st.sampled_from(
    [
        "<urn:a>", "<http://a.b/c?d=e#f>", "<http://a.b:80/%C3%A9>", "<http://a.b/%zz>", "<a>", "<>", "<http://é/ü>",
        "<x:\\u0041>", "_:a", "_:a.b", "_:1-", "_:é", "_:", '"x"', '""', '"a b"', '"\\n"', '"\\uD800"', '"\t"',
        '"a <b>"',
        '"\x85\ufffe"', '"x"@en', '"x"@EN-us', '"x"@a', '"x"@en--ltr', '"x"@abcdefghij',
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"x"^^<http://www.w3.org/2001/XMLSchema#string>', '"x"^^<urn:string>', '"x"^^<http://a/thing>',
        '"x"^^<http://a#b#c>', '"x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>',
        "<<(", ")>>", "#", ".", "\r",
    ]
)  # fmt: skip
_odd_lines = st.lists(st.tuples(_words, st.sampled_from([" ", " ", " ", "", "  ", "\t"])), max_size=8).map(
    lambda words: "".join(word + space for word, space in words)
)
_usual_lines = st.lists(_words, min_size=3, max_size=4).map(lambda words: " ".join([*words, "."]))
_random_iris = st.text(st.sampled_from("ab:/?#[]@!$&'()*+,;=%20~é\u00a0\ue000 \\"), max_size=9).map(
    lambda text: f"<urn:s> <urn:p> <http{text}> ."
)
_written_lines = quads.map(lambda quad: f"{' '.join(part for part in row_of(quad) if part)} .")
_formats = st.sampled_from([RdfFormat.N_TRIPLES, RdfFormat.N_QUADS])


@given(st.lists(st.one_of(_odd_lines, _usual_lines, _random_iris, _written_lines), min_size=1, max_size=4), _formats)
@example(['<urn:s> <urn:p> "x"^^<http://a/thing> .'], RdfFormat.N_TRIPLES)
def test_lines_are_read_as_pyoxigraph_reads_them(lines: list[str], format: RdfFormat) -> None:
    expected, damaged = [], []
    for place, line in enumerate(lines):
        try:
            expected += [row_of(quad) for quad in parse(line, format, rename_blank_nodes=False)]
        except SyntaxError:
            damaged.append(place)
    parsed = parse_lines("".join(f"{line}\n" for line in lines).encode(), format)
    found = [tuple(row.values()) for batch in parsed.rows for row in batch.to_pylist()]
    assert sorted(found) == sorted(expected)
    assert [one.place for one in parsed.damaged] == damaged
    assert parsed.lines == len(lines)
