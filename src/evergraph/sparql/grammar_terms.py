"""Grammar rules 75–109 and 129–138: terms, triples, paths (https://www.w3.org/TR/sparql11-query/#sparqlGrammar)."""

import re
import sys
from collections.abc import Callable
from typing import TypeAlias

from evergraph.sparql.algebra import (
    Alternative,
    Inverse,
    NegatedSet,
    OneOrMore,
    PathExpression,
    PatternTerm,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
)
from evergraph.sparql.iris import resolve
from evergraph.sparql.lexer import Kind, Reader, Token
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Variable

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = NamedNode(RDF + "type")
RDF_FIRST = NamedNode(RDF + "first")
RDF_REST = NamedNode(RDF + "rest")
RDF_NIL = NamedNode(RDF + "nil")

SyntaxTriple: TypeAlias = tuple[PatternTerm, PathExpression | Variable, PatternTerm]
"""A triple as written; a `BlankNode` in it is a label of the query, not a node of the data."""

_NUMBERS = {Kind.INTEGER: "integer", Kind.DECIMAL: "decimal", Kind.DOUBLE: "double"}
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


class TermGrammar(Reader):
    """Terms, triples and paths. ``base`` and ``prefixes`` are what the prologue has said so far."""

    def __init__(self, text: str, base: str = "") -> None:
        super().__init__(text)
        self.base = base
        self.prefixes: dict[str, str] = {}
        self._used = {token.text[1:] for token in self.tokens if token.kind is Kind.VAR}
        self.generated: set[Variable] = set()
        self._used_labels = {token.text[2:] for token in self.tokens if token.kind is Kind.BLANK_NODE_LABEL}

    def fresh_blank_node(self) -> BlankNode:
        """Make a blank node that occurs nowhere else, with the same label each time that the text is read."""
        number = len(self._used_labels) + 1
        while f"b{number}" in self._used_labels:
            number += 1
        self._used_labels.add(f"b{number}")
        return BlankNode(f"b{number}")

    def fresh(self, name: str) -> Variable:
        """Make a variable that occurs nowhere else."""
        number = 1
        while f"{name}·{number}" in self._used:
            number += 1
        self._used.add(f"{name}·{number}")
        variable = Variable(f"{name}·{number}")
        self.generated.add(variable)
        return variable

    def variable(self) -> Variable:
        """Read a variable."""
        if not self.at_kind(Kind.VAR):
            self.fail("expected a variable")
        return Variable(self.advance().text[1:])

    def iri(self) -> NamedNode:
        """Read an IRI, as such or with a prefix."""
        if not self.at_kind(Kind.IRIREF, Kind.PNAME):
            self.fail("expected an IRI")
        token = self.advance()
        if token.kind is Kind.IRIREF:
            return self._named(resolve(self.base, self._unescape(token.text[1:-1], token)), token)
        prefix, local = token.text.split(":", 1)
        if prefix not in self.prefixes:
            self.fail(f"the prefix {prefix}: is not declared", token)
        return self._named(self.prefixes[prefix] + re.sub(r"\\(.)", r"\1", local), token)

    def _named(self, iri: str, token: Token) -> NamedNode:
        try:
            return NamedNode(iri)
        except ValueError as error:
            return self.fail(f"not an absolute IRI ({error})", token)

    def _unescape(self, text: str, token: Token) -> str:
        def one(found: re.Match[str]) -> str:
            if found[3]:
                return _ESCAPES.get(found[3]) or self.fail(f"unknown escape {found[0]}", token)
            code = int(found[1] or found[2], 16)
            if code > sys.maxunicode or 0xD800 <= code < 0xE000:
                self.fail(f"{found[0]} is no character", token)
            return chr(code)

        return _ESCAPE.sub(one, text) if "\\" in text else text

    def string(self) -> str:
        """Read a string without its quotes and escapes."""
        if not self.at_kind(Kind.STRING):
            self.fail("expected a string")
        token = self.advance()
        quotes = 3 if token.text[:3] in ('"""', "'''") else 1
        return self._unescape(token.text[quotes:-quotes], token)

    def literal(self) -> Literal:
        """Read a literal in any notation; a sign belongs to the number that follows it at once."""
        if self.at_kind(Kind.STRING):
            text = self.string()
            if self.at_kind(Kind.LANGTAG):
                return Literal(text, language=self.advance().text[1:])
            return Literal(text, datatype=self.iri()) if self.accept("^^") else Literal(text)
        if word := self.accept("TRUE", "FALSE"):
            return Literal(word.lower(), datatype=NamedNode(XSD + "boolean"))
        sign = self.advance().text if self.at_signed_number() else ""
        if not self.at_kind(*_NUMBERS):
            self.fail("expected a literal")
        token = self.advance()
        return Literal(sign + token.text, datatype=NamedNode(XSD + _NUMBERS[token.kind]))

    def at_signed_number(self) -> bool:
        """Tell whether a sign comes next, and a number follows it without a space."""
        if not self.at("+", "-"):
            return False
        number = self.tokens[self.position + 1]
        return number.kind in _NUMBERS and number.start == self.token.start + 1

    def at_literal(self) -> bool:
        """Tell whether a literal comes next."""
        return self.at_kind(Kind.STRING, *_NUMBERS) or self.at("TRUE", "FALSE") or self.at_signed_number()

    def var_or_iri(self) -> NamedNode | Variable:
        """[107] VarOrIri."""
        return self.variable() if self.at_kind(Kind.VAR) else self.iri()

    def triples_same_subject(self, triples: list[SyntaxTriple], verb: Callable[[], PathExpression | Variable]) -> None:
        """[75, 81] TriplesSameSubject and TriplesSameSubjectPath."""
        standalone = (self.at("[") and not self.at("]", ahead=1)) or (self.at("(") and not self.at(")", ahead=1))
        subject = self._graph_node(triples, verb)
        if not standalone or self._at_verb():
            self._property_list(subject, triples, verb)

    def _at_verb(self) -> bool:
        return self.at_kind(Kind.VAR, Kind.IRIREF, Kind.PNAME) or self.at("A", "^", "!", "(")

    def _property_list(
        self, subject: PatternTerm, triples: list[SyntaxTriple], verb: Callable[[], PathExpression | Variable]
    ) -> None:
        while True:
            predicate = verb()
            while True:
                # The triples of a node that is written out come after the one that leads to it, as people read them.
                inner: list[SyntaxTriple] = []
                triples.append((subject, predicate, self._graph_node(inner, verb)))
                triples.extend(inner)
                if not self.accept(","):
                    break
            while self.accept(";"):
                pass
            if not self._at_verb():
                return

    def _graph_node(self, triples: list[SyntaxTriple], verb: Callable[[], PathExpression | Variable]) -> PatternTerm:
        """[104] GraphNode: a term, a blank node with its properties, or a collection."""
        if self.at_kind(Kind.VAR):
            return self.variable()
        if self.at_kind(Kind.IRIREF, Kind.PNAME):
            return self.iri()
        if self.at_kind(Kind.BLANK_NODE_LABEL):
            return BlankNode(self.advance().text[2:])
        if self.at_literal():
            return self.literal()
        if self.accept("["):
            node = self.fresh_blank_node()
            if not self.at("]"):
                self._property_list(node, triples, verb)
            self.expect("]")
            return node
        if self.accept("("):
            return self._collection(triples, verb)
        return self.fail("expected a term")

    def _collection(self, triples: list[SyntaxTriple], verb: Callable[[], PathExpression | Variable]) -> PatternTerm:
        """[102] Collection."""
        cells: list[BlankNode] = []
        while not self.accept(")"):
            cell, inner = self.fresh_blank_node(), list[SyntaxTriple]()
            if cells:
                triples.append((cells[-1], RDF_REST, cell))
            cells.append(cell)
            triples.append((cell, RDF_FIRST, self._graph_node(inner, verb)))
            triples.extend(inner)
        if not cells:
            return RDF_NIL
        triples.append((cells[-1], RDF_REST, RDF_NIL))
        return cells[0]

    def verb(self) -> NamedNode | Variable:
        """[78] Verb."""
        return RDF_TYPE if self._accept_a() else self.var_or_iri()

    def verb_path(self) -> PathExpression | Variable:
        """[84, 85] VerbPath and VerbSimple."""
        return self.variable() if self.at_kind(Kind.VAR) else self._path_alternative()

    def _accept_a(self) -> bool:
        if self.at_kind(Kind.WORD) and self.token.text == "a":
            self.advance()
            return True
        return False

    def _path_alternative(self) -> PathExpression:
        choices = [self._path_sequence()]
        while self.accept("|"):
            choices.append(self._path_sequence())
        return choices[0] if len(choices) == 1 else Alternative(tuple(choices))

    def _path_sequence(self) -> PathExpression:
        steps = [self._path_element_or_inverse()]
        while self.accept("/"):
            steps.append(self._path_element_or_inverse())
        return steps[0] if len(steps) == 1 else Sequence(tuple(steps))

    def _path_element_or_inverse(self) -> PathExpression:
        return Inverse(self._path_element()) if self.accept("^") else self._path_element()

    def _path_element(self) -> PathExpression:
        path = self._path_primary()
        if self.at_signed_number():  # ?s :p +1 has a number for an object
            return path
        match self.accept("?", "*", "+"):
            case "?":
                return ZeroOrOne(path)
            case "*":
                return ZeroOrMore(path)
            case "+":
                return OneOrMore(path)
            case _:
                return path

    def _path_primary(self) -> PathExpression:
        if self._accept_a():
            return RDF_TYPE
        if self.accept("!"):
            return self._negated_set()
        if self.accept("("):
            path = self._path_alternative()
            self.expect(")")
            return path
        return self.iri()

    def _negated_set(self) -> NegatedSet:
        forward: list[NamedNode] = []
        inverse: list[NamedNode] = []

        def one() -> None:
            members = inverse if self.accept("^") else forward
            members.append(RDF_TYPE if self._accept_a() else self.iri())

        if not self.accept("("):
            one()
        elif not self.accept(")"):
            one()
            while self.accept("|"):
                one()
            self.expect(")")
        return NegatedSet(tuple(forward) if forward or not inverse else None, tuple(inverse) if inverse else None)
