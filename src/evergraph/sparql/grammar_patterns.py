"""Grammar rules for graph patterns, translated as they are read (https://www.w3.org/TR/sparql11-query/#sparqlQuery)."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import assert_never

from evergraph.sparql.algebra import (
    BGP,
    UNIT,
    Alternative,
    Bound,
    Call,
    Compare,
    Comparison,
    Expression,
    Extend,
    Filter,
    Function,
    Graph,
    GraphNames,
    In,
    Inverse,
    Join,
    LeftJoin,
    Minus,
    NegatedSet,
    Not,
    OneOrMore,
    Or,
    Path,
    PathExpression,
    Pattern,
    PatternTerm,
    Sequence,
    Service,
    TriplePattern,
    Values,
    ZeroOrMore,
    ZeroOrOne,
    conjunction,
    join,
    union,
)
from evergraph.sparql.grammar_expressions import ExpressionGrammar
from evergraph.sparql.grammar_terms import SyntaxTriple
from evergraph.sparql.lexer import Kind
from evergraph.sparql.rewrite import rename
from evergraph.sparql.scope import exists_in, mentioned, needs_graph, variables
from evergraph.terms import DEFAULT_GRAPH, BlankNode, DefaultGraph, Literal, NamedNode, Term, Variable


@dataclass(slots=True)
class _Group:
    """A group while it is read: its filters apply at its end, or, in an OPTIONAL, to both sides."""

    pattern: Pattern = UNIT
    filters: list[Expression] = field(default_factory=list)


class PatternGrammar(ExpressionGrammar):
    """Graph patterns. ``graph`` is the graph that patterns look at where the reader stands."""

    def __init__(self, text: str, base: str = "") -> None:
        super().__init__(text, base)
        self.graph: DefaultGraph | NamedNode | Variable = DEFAULT_GRAPH
        self._labels: dict[BlankNode, Variable] = {}

    @abstractmethod
    def sub_select(self) -> Pattern:
        """[8] SubSelect."""

    def group_graph_pattern(self) -> Pattern:
        """[53] GroupGraphPattern."""
        return self._closed(self._group())

    def _closed(self, group: _Group) -> Pattern:
        return self.filtered(group.pattern, conjunction(*group.filters)) if group.filters else group.pattern

    def filtered(self, pattern: Pattern, condition: Expression) -> Pattern:
        """Filter a pattern; an EXISTS must find the active graph in the solutions that it judges."""
        return Filter(condition, self.in_graph(pattern) if exists_in(condition) else pattern)

    def extended(self, pattern: Pattern, variable: Variable, expression: Expression) -> Pattern:
        """Extend a pattern by a variable."""
        return Extend(self.in_graph(pattern) if exists_in(expression) else pattern, variable, expression)

    def in_graph(self, pattern: Pattern) -> Pattern:
        """Tie a pattern to the active graph, unless it is already: solutions only where the graph is, and naming it."""
        if isinstance(self.graph, DefaultGraph) or needs_graph(pattern, self.graph):
            return pattern
        return join(GraphNames(self.graph), pattern)

    def _group(self) -> _Group:
        self.expect("{")
        if self.at("SELECT"):
            group = _Group(self.sub_select())
            self.expect("}")
            return group
        group = _Group()
        while not self.accept("}"):
            self._element(group)
        return group

    def _element(self, group: _Group) -> None:
        if self.accept("OPTIONAL"):
            right = self._group()
            condition = conjunction(*right.filters)
            # A solution of the left side carries the graph, so that the right side is looked up in the same one.
            group.pattern = LeftJoin(self.in_graph(group.pattern), right.pattern, condition)
        elif self.accept("MINUS"):
            group.pattern = self._minus(group.pattern, self.group_graph_pattern())
        elif self.accept("FILTER"):
            group.filters.append(self.constraint())
        elif self.accept("BIND"):
            self.expect("(")
            expression = self.expression()
            self.expect("AS")
            group.pattern = self.extended(group.pattern, self.variable(), expression)
            self.expect(")")
        elif self.accept("VALUES"):
            group.pattern = join(group.pattern, self.data_block())
        elif self.accept("GRAPH"):
            group.pattern = join(group.pattern, self._graph(self.var_or_iri()))
        elif self.accept("SERVICE"):
            group.pattern = join(group.pattern, self._service())
        elif self.at("{"):
            group.pattern = join(group.pattern, self._group_or_union())
        else:
            group.pattern = join(group.pattern, self._triples_block())
            return
        self.accept(".")

    def _group_or_union(self) -> Pattern:
        operands = [self.group_graph_pattern()]
        while self.accept("UNION"):
            operands.append(self.group_graph_pattern())
        return operands[0] if len(operands) == 1 else union(*map(self.in_graph, operands))

    def _minus(self, left: Pattern, right: Pattern) -> Pattern:
        if not isinstance(self.graph, Variable):
            return Minus(left, right)
        ours, theirs = variables(left), variables(right)
        if (ours.certain & theirs.certain) - {self.graph}:
            return Minus(self.in_graph(left), right)
        if not (ours.possible & theirs.possible) - {self.graph}:
            return left
        return Graph(self.graph, Minus(left, right))

    def _service(self) -> Pattern:
        silent = bool(self.accept("SILENT"))
        endpoint = self.var_or_iri()
        with self._active(DEFAULT_GRAPH):
            return Service(endpoint, self.group_graph_pattern(), silent)

    @contextmanager
    def _active(self, graph: DefaultGraph | NamedNode | Variable) -> Iterator[None]:
        outer, self.graph = self.graph, graph
        try:
            yield
        finally:
            self.graph = outer

    def _graph(self, name: NamedNode | Variable) -> Pattern:
        if isinstance(name, NamedNode):
            with self._active(name):
                return self.in_graph(self.group_graph_pattern())
        active = self.fresh(name.value)
        with self._active(active):
            pattern = self.in_graph(self.group_graph_pattern())
        if name not in mentioned(pattern) or _only_triples(pattern):
            return rename(pattern, {active: name})
        # Inside, the variable is not yet the name of the graph: GRAPH joins the name at its end.
        inner = self.fresh(name.value)
        same = Call(Function.SAMETERM, (inner, name))
        return Filter(Or((Not(Bound(inner)), same)), rename(rename(pattern, {name: inner}), {active: name}))

    def data_block(self) -> Values:
        """[62] DataBlock."""
        if self.at_kind(Kind.VAR):
            columns = (self.variable(),)
            self.expect("{")
            rows: list[tuple[Term | None, ...]] = []
            while not self.accept("}"):
                rows.append((self._data_block_value(),))
            return Values(columns, tuple(rows))
        self.expect("(")
        names: list[Variable] = []
        while not self.accept(")"):
            names.append(self.variable())
        self.expect("{")
        rows = []
        while self.accept("("):
            row: list[Term | None] = []
            while not self.accept(")"):
                row.append(self._data_block_value())
            if len(row) != len(names):
                self.fail(f"expected {len(names)} values in a row of VALUES")
            rows.append(tuple(row))
        self.expect("}")
        return Values(tuple(names), tuple(rows))

    def _data_block_value(self) -> NamedNode | Literal | None:
        if self.accept("UNDEF"):
            return None
        return self.literal() if self.at_literal() else self.iri()

    def _triples_block(self) -> Pattern:
        """[55] TriplesBlock."""
        triples: list[SyntaxTriple] = []
        self.triples_same_subject(triples, self.verb_path)
        while self.accept(".") and not self._at_block_end():
            self.triples_same_subject(triples, self.verb_path)
        basic: Pattern = UNIT
        others: Pattern = UNIT
        for subject, verb, object_ in triples:
            part = self.path_pattern(self._node(subject), verb, self._node(object_))
            if isinstance(part, BGP):
                basic = join(basic, part)
            else:
                others = join(others, part)
        return join(basic, others)

    def _at_block_end(self) -> bool:
        return self.at("}", "{", "OPTIONAL", "MINUS", "FILTER", "BIND", "VALUES", "GRAPH", "SERVICE")

    def _node(self, term: PatternTerm) -> PatternTerm:
        """Turn a blank node of the query into a variable that nobody can name."""
        if not isinstance(term, BlankNode):
            return term
        if term not in self._labels:
            self._labels[term] = self.fresh("_")
        return self._labels[term]

    def path_pattern(self, subject: PatternTerm, path: PathExpression | Variable, object_: PatternTerm) -> Pattern:
        """Translate a property path pattern (https://www.w3.org/TR/sparql11-query/#sparqlTranslatePathPatterns)."""
        match path:
            case NamedNode() | Variable():
                return BGP((TriplePattern(subject, path, object_, self.graph),))
            case Inverse(inner):
                return self.path_pattern(object_, inner, subject)
            case Sequence(steps):
                pattern: Pattern = UNIT
                for step in steps[:-1]:
                    middle = self.fresh("_")
                    pattern = join(pattern, self.path_pattern(subject, step, middle))
                    subject = middle
                return join(pattern, self.path_pattern(subject, steps[-1], object_))
            case Alternative(choices):
                return union(*(self.path_pattern(subject, choice, object_) for choice in choices))
            case NegatedSet(forward, inverse):
                directions: list[Pattern] = []
                if forward is not None:
                    directions.append(self._negated(subject, forward, object_))
                if inverse is not None:
                    directions.append(self._negated(object_, inverse, subject))
                return union(*directions)
            case ZeroOrOne() | ZeroOrMore() | OneOrMore():
                return Path(subject, path, object_, self.graph)
            case _:
                assert_never(path)

    def _negated(self, subject: PatternTerm, excluded: tuple[NamedNode, ...], object_: PatternTerm) -> Pattern:
        predicate = self.fresh("_")
        pattern = BGP((TriplePattern(subject, predicate, object_, self.graph),))
        match excluded:
            case ():
                return pattern
            case (single,):
                return Filter(Compare(Comparison.NOT_EQUAL, predicate, single), pattern)
            case _:
                return Filter(Not(In(predicate, excluded)), pattern)


def _only_triples(pattern: Pattern) -> bool:
    match pattern:
        case BGP() | Path():
            return True
        case Join(left, right):
            return _only_triples(left) and _only_triples(right)
        case _:
            return False
