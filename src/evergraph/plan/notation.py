"""Terms, paths, patterns and expressions as people write them: the notation of `explain`."""

from collections.abc import Iterable, Mapping
from typing import assert_never

from evergraph.plan.lower import ANY_GRAPH
from evergraph.plan.nodes import Context, EachGraph, Merge, QuadPattern
from evergraph.sparql.algebra import (
    Aggregate,
    Alternative,
    And,
    Bound,
    Calculate,
    Call,
    Cast,
    Coalesce,
    Compare,
    Exists,
    Expression,
    ExtensionCall,
    Function,
    If,
    In,
    Inverse,
    Negate,
    NegatedSet,
    Not,
    OneOrMore,
    Or,
    OrderCondition,
    Path,
    PathExpression,
    PatternTerm,
    Plus,
    Sequence,
    TriplePattern,
    TripleTemplate,
    ZeroOrMore,
    ZeroOrOne,
)
from evergraph.sparql.lexer import Kind, tokens
from evergraph.terms import XSD, BlankNode, DefaultGraph, Literal, NamedNode, Triple, Variable

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_PLAIN_DATATYPES = frozenset(XSD + name for name in ("integer", "decimal", "double", "boolean"))
_FORMS = frozenset({"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"})


def prefixes(text: str) -> dict[str, str]:
    """Return the prefixes that a query declares, with their colon."""
    found: dict[str, str] = {}
    parts = list(tokens(text))
    for word, name, iri in zip(parts, parts[1:], parts[2:], strict=False):
        if word.kind is Kind.WORD and word.text.upper() in _FORMS:
            break
        if word.text.upper() == "PREFIX" and name.kind is Kind.PNAME and iri.kind is Kind.IRIREF:
            found[name.text] = iri.text[1:-1]
    return found


class Notation:
    """Writes with the prefixes of one query; the longest that fits is used."""

    def __init__(self, prefixes: Mapping[str, str] | None = None) -> None:
        self._prefixes = sorted((prefixes or {}).items(), key=lambda pair: (-len(pair[1]), pair[0]))

    def term(self, term: PatternTerm) -> str:
        """Write a term or a variable. A blank node of the query is a variable that nobody can name."""
        match term:
            case Variable(value=name):
                return f"_:{name.removeprefix('_·')}" if name.startswith("_·") else f"?{name}"
            case NamedNode(value=iri):
                return "each" if term == ANY_GRAPH else self._iri(iri)
            case Literal(value=text, datatype=datatype) if datatype.value in _PLAIN_DATATYPES:
                return text
            case Literal(value=text, language=None, datatype=datatype) if datatype.value != XSD + "string":
                return f"{Literal(text)}^^{self._iri(datatype.value)}"
            case BlankNode() | Literal():
                return str(term)
            case Triple():
                members = (term.subject, term.predicate, term.object)
                return f"<<( {' '.join(map(self.term, members))} )>>"
            case _:
                assert_never(term)

    def variables(self, variables: Iterable[Variable]) -> str:
        """Write several variables."""
        return " ".join(map(self.term, variables))

    def triple(self, triple: TriplePattern | QuadPattern | TripleTemplate) -> str:
        """Write a triple pattern, in its graph if that is not the default graph."""
        verb = "a" if triple.predicate == NamedNode(_TYPE) else self.term(triple.predicate)
        text = f"{self.term(triple.subject)} {verb} {self.term(triple.object)}"
        match triple:
            case TriplePattern(graph=graph):
                return text if isinstance(graph, DefaultGraph) else f"GRAPH {self.term(graph)} {{ {text} }}"
            case QuadPattern(context=context):
                return text if isinstance(context, DefaultGraph) else f"{self.context(context)} {{ {text} }}"
            case TripleTemplate():
                return text

    def context(self, context: Context) -> str:
        """Write the graph or graphs that a leaf looks at."""
        match context:
            case DefaultGraph():
                return "the default graph"
            case EachGraph(variable, None):
                return f"GRAPH {self.term(variable)}"
            case EachGraph(variable, among):
                names = " ".join(sorted(map(self.term, among or ())))
                return f"GRAPH {self.term(variable)} (FROM NAMED {names})"
            case Merge(graphs):
                return f"FROM {' '.join(map(self.term, graphs))}"
            case NamedNode() | BlankNode():
                return f"GRAPH {self.term(context)}"
            case _:
                assert_never(context)

    def path_pattern(self, pattern: Path) -> str:
        """Write a path between two ends."""
        text = f"{self.term(pattern.subject)} {self.path(pattern.path)} {self.term(pattern.object)}"
        return text if isinstance(pattern.graph, DefaultGraph) else f"GRAPH {self.term(pattern.graph)} {{ {text} }}"

    def path(self, path: PathExpression) -> str:
        """Write a path, with brackets where it has parts."""
        match path:
            case NamedNode():
                return self.term(path)
            case Inverse(inner):
                return f"^{self.path(inner)}"
            case Sequence(steps):
                return f"({'/'.join(map(self.path, steps))})"
            case Alternative(choices):
                return f"({'|'.join(map(self.path, choices))})"
            case NegatedSet(forward, inverse):
                members = [self.term(one) for one in forward or ()] + [f"^{self.term(one)}" for one in inverse or ()]
                return f"!({'|'.join(members)})"
            case ZeroOrOne(inner):
                return f"{self.path(inner)}?"
            case ZeroOrMore(inner):
                return f"{self.path(inner)}*"
            case OneOrMore(inner):
                return f"{self.path(inner)}+"
            case _:
                assert_never(path)

    def expression(self, expression: Expression) -> str:
        """Write an expression; operands that are operations themselves stand in brackets."""
        match expression:
            case Variable() | NamedNode() | BlankNode() | Literal() | Triple():
                return self.term(expression)
            case And(operands):
                return " && ".join(map(self._operand, operands))
            case Or(operands):
                return " || ".join(map(self._operand, operands))
            case Not(operand):
                return f"!{self._operand(operand)}"
            case Negate(operand):
                return f"-{self._operand(operand)}"
            case Plus(operand):
                return f"+{self._operand(operand)}"
            case Compare(operator, left, right) | Calculate(operator, left, right):
                return f"{self._operand(left)} {operator} {self._operand(right)}"
            case In(operand, members):
                return f"{self._operand(operand)} IN ({self._list(members)})"
            case If(condition, then, otherwise):
                return f"IF({self._list((condition, then, otherwise))})"
            case Coalesce(operands):
                return f"COALESCE({self._list(operands)})"
            case Bound(variable):
                return f"BOUND({self.term(variable)})"
            case Exists():
                return "EXISTS {…}"
            case Call(Function.IRI, arguments):
                return f"IRI({self._list(arguments[:1])})"  # the second one is the base that is in force
            case Call(function, arguments):
                return f"{function.name}({self._list(arguments)})"
            case Cast(datatype, operand):
                return f"{self.term(datatype)}({self.expression(operand)})"
            case ExtensionCall(function, arguments):
                return f"{self.term(function)}({self._list(arguments)})"
            case _:
                assert_never(expression)

    def aggregate(self, aggregate: Aggregate) -> str:
        """Write an aggregate."""
        inner = "*" if aggregate.expression is None else self.expression(aggregate.expression)
        return f"{aggregate.function.name}({'DISTINCT ' if aggregate.distinct else ''}{inner})"

    def order(self, condition: OrderCondition) -> str:
        """Write a comparator of ORDER BY."""
        text = self.expression(condition.expression)
        return f"DESC({text})" if condition.descending else text

    def _list(self, expressions: Iterable[Expression]) -> str:
        return ", ".join(map(self.expression, expressions))

    def _operand(self, expression: Expression) -> str:
        text = self.expression(expression)
        return f"({text})" if isinstance(expression, And | Or | Compare | Calculate | In) else text

    def _iri(self, iri: str) -> str:
        for name, start in self._prefixes:
            local = iri.removeprefix(start)
            if local != iri and start and local.replace("_", "").replace("-", "").isalnum():
                return name + local
        return f"<{iri}>"
