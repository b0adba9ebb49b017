from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import Store
from tests.support.rdf_strategies import objects

from evergraph.gate.stored_form import stored_quads
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Quad, Term, Triple

S, P = NamedNode("urn:s"), NamedNode("urn:p")
NUMBERS = "integer decimal float double byte short int long unsignedByte unsignedShort unsignedInt unsignedLong"
SIGNED = "positiveInteger negativeInteger nonPositiveInteger nonNegativeInteger"
TIMES = "dateTime dateTimeStamp date time gYear gYearMonth gMonth gMonthDay gDay"
OTHERS = (
    "duration dayTimeDuration yearMonthDuration boolean string normalizedString token anyURI hexBinary base64Binary"
)
DATATYPES = f"{NUMBERS} {SIGNED} {TIMES} {OTHERS}".split()

lexical_forms = st.one_of(
    st.from_regex(r"[+-]?[0-9]{0,22}(\.[0-9]{0,22})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"-?[0-9]{4}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-5]0:00(\.[0-9]{0,3})?)?(Z|[+-]0[0-9]:00)?\Z"),
    st.from_regex(r"-?P([0-9]{1,3}Y)?([0-9]{1,3}M)?([0-9]{1,3}D)?(T[0-9]{1,3}H[0-9]{1,4}S)?", fullmatch=True),
    st.sampled_from(["true", "false", "0", "1", "-0", "INF", "-INF", "+INF", "NaN", "24:00:00", "--02-30", " 1 ", ""]),
    st.text(max_size=5),
)  # fmt: skip
typed_literals = st.builds(
    lambda text, name: Literal(text, datatype=NamedNode(XSD + name)), lexical_forms, st.sampled_from(DATATYPES)
)


def given_back(quad: Quad) -> set[Quad]:
    store = Store()
    store.add(quad)
    return set(store)


@given(typed_literals | objects)
@example(Literal("01", datatype=NamedNode(XSD + "integer")))
@example(Triple(S, P, Triple(BlankNode("b"), P, Literal("1.0", datatype=NamedNode(XSD + "decimal")))))
def test_is_what_a_store_gives_back(value: Term) -> None:
    quad = Quad(S, P, value, S)
    assert stored_quads({quad}) == given_back(quad)


@given(st.sets(typed_literals, max_size=5))
def test_sets_keep_what_does_not_change(values: set[Literal]) -> None:
    quads = {Quad(S, P, value) for value in values}
    assert stored_quads(quads) == {stored for quad in quads for stored in given_back(quad)}
