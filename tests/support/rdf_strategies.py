"""Random RDF: every kind of term that N-Quads can say, drawn from small pools so that collisions happen."""

from hypothesis import strategies as st
from pyoxigraph import BaseDirection

from evergraph.delta import Request
from evergraph.terms import DEFAULT_GRAPH, XSD, BlankNode, GraphName, Literal, NamedNode, Quad, Term, Triple

characters = st.characters(codec="utf-8")
_AWKWARD_TEXTS = st.sampled_from(
    ["", "01", "1", "<_:x>", 'a "b" \\ c', "# no comment", "x:y", "\r\n\t", "\0\x0b\x7f\x85\u2028\ufffe", "é😀", "TX ."]
)
_texts = st.one_of(_AWKWARD_TEXTS, st.text(characters, max_size=6))
_languages = st.sampled_from(["en", "de-at", "zh-hant-tw"])

iris = st.sampled_from(["urn:a", "http://example.org/é", "http://example.org/p#x", "urn:a:b%20c", "ex:1"]).map(
    NamedNode
)
blank_nodes = st.sampled_from(["a", "b0", "0", "x.y", "é-1", "0123456789abcdef"]).map(BlankNode)
literals = st.one_of(
    _texts.map(Literal),
    st.builds(lambda text, language: Literal(text, language=language), _texts, _languages),
    st.builds(
        lambda text, language, direction: Literal(text, language=language, direction=direction),
        _texts,
        _languages,
        st.sampled_from([BaseDirection.LTR, BaseDirection.RTL]),
    ),
    st.builds(
        lambda text, iri: Literal(text, datatype=iri), _texts, st.sampled_from([NamedNode(XSD + "integer")]) | iris
    ),
)
subjects = st.one_of(iris, blank_nodes)
_plain_objects: st.SearchStrategy[Term] = st.one_of(iris, blank_nodes, literals)
objects: st.SearchStrategy[Term] = st.recursive(
    _plain_objects, lambda inner: st.builds(Triple, subjects, iris, inner), max_leaves=3
)
graphs: st.SearchStrategy[GraphName] = st.one_of(st.just(DEFAULT_GRAPH), iris, blank_nodes)
quads = st.builds(Quad, subjects, iris, objects, graphs)
quad_sets = st.frozensets(quads, max_size=12)
requests = st.builds(lambda removed, added: Request(removed - added, added), quad_sets, quad_sets)
