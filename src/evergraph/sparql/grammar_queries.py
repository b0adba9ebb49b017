"""Grammar rules for queries and sub-selects, and their modifiers (https://www.w3.org/TR/sparql11-query/#convertSolMod)."""

from dataclasses import dataclass, field

from evergraph.sparql.algebra import (
    UNIT,
    Aggregate,
    AggregateFunction,
    Ask,
    Construct,
    DatasetClause,
    Describe,
    Distinct,
    Expression,
    Graph,
    Group,
    OrderBy,
    OrderCondition,
    Pattern,
    Project,
    Query,
    Reduced,
    Select,
    Slice,
    TripleTemplate,
    conjunction,
    join,
)
from evergraph.sparql.grammar_patterns import PatternGrammar
from evergraph.sparql.grammar_terms import SyntaxTriple
from evergraph.sparql.lexer import Kind
from evergraph.sparql.rewrite import rename, rename_expression
from evergraph.sparql.scope import mentioned, variables, walk
from evergraph.terms import NamedNode, Variable


@dataclass(slots=True)
class _Projection:
    """[9] SelectClause: what is selected; no variables stand for ``*``."""

    modifier: str = ""
    variables: list[Variable] = field(default_factory=list)
    expressions: dict[Variable, Expression] = field(default_factory=dict)


@dataclass(slots=True)
class _Modifiers:
    """[18] SolutionModifier, without its group clause."""

    having: list[Expression] = field(default_factory=list)
    order: list[OrderCondition] = field(default_factory=list)
    start: int = 0
    length: int | None = None

    @property
    def slices(self) -> bool:
        return self.start > 0 or self.length is not None


class QueryGrammar(PatternGrammar):
    """Whole queries."""

    def query(self) -> Query:
        """[1] QueryUnit."""
        self._prologue()
        match self.expect("SELECT", "ASK", "CONSTRUCT", "DESCRIBE"):
            case "SELECT":
                query: Query = self._select()
            case "ASK":
                dataset = self._dataset_clauses()
                query = Ask(self._modified(self._where(), _Projection()), dataset)
            case "CONSTRUCT":
                query = self._construct()
            case _:
                query = self._describe()
        if not self.at_kind(Kind.END):
            self.fail("expected the end of the query")
        return query

    def _prologue(self) -> None:
        while word := self.accept("BASE", "PREFIX"):
            if word == "BASE":
                self.base = self.iri().value
                continue
            name = self.advance()
            if name.kind is not Kind.PNAME or not name.text.endswith(":"):
                self.fail("expected a prefix", name)
            self.prefixes[name.text[:-1]] = self.iri().value

    def _select(self) -> Select:
        projection = self._select_clause()
        dataset = self._dataset_clauses()
        pattern = self._modified(self._where(), projection)
        return Select(pattern, tuple(projection.variables), dataset)

    def _construct(self) -> Construct:
        template: list[SyntaxTriple] = []
        if self.at("{"):
            self._template(template)
            dataset, pattern = self._dataset_clauses(), self._where()
        else:
            dataset = self._dataset_clauses()
            self.expect("WHERE")
            start = self.position
            self._template(template)
            self.position = start
            pattern = self.group_graph_pattern()
        triples = tuple(
            TripleTemplate(subject, predicate, object_)
            for subject, predicate, object_ in template
            if isinstance(predicate, NamedNode | Variable)
        )
        return Construct(triples, self._modified(pattern, _Projection()), dataset)

    def _template(self, triples: list[SyntaxTriple]) -> None:
        self.expect("{")
        while not self.accept("}"):
            self.triples_same_subject(triples, self.verb)
            if not self.at("}"):
                self.expect(".")

    def _describe(self) -> Describe:
        targets: list[NamedNode | Variable] = []
        if not self.accept("*"):
            targets.append(self.var_or_iri())
            while self.at_kind(Kind.VAR, Kind.IRIREF, Kind.PNAME):
                targets.append(self.var_or_iri())
        dataset = self._dataset_clauses()
        where = self._where() if self.at("WHERE", "{") else UNIT
        projection = _Projection(variables=list(dict.fromkeys(t for t in targets if isinstance(t, Variable))))
        pattern = self._modified(where, projection)
        return Describe(tuple(targets or projection.variables), pattern, dataset)

    def _dataset_clauses(self) -> DatasetClause | None:
        default: list[NamedNode] = []
        named: list[NamedNode] = []
        while self.accept("FROM"):
            graphs = named if self.accept("NAMED") else default
            graphs.append(self.iri())
        return DatasetClause(tuple(default), tuple(named)) if default or named else None

    def _where(self) -> Pattern:
        self.accept("WHERE")
        return self.group_graph_pattern()

    def _select_clause(self) -> _Projection:
        projection = _Projection(self.accept("DISTINCT", "REDUCED"))
        if self.accept("*"):
            return projection
        while self.at_kind(Kind.VAR) or self.at("("):
            if self.accept("("):
                expression = self.expression()
                self.expect("AS")
                variable = self.variable()
                self.expect(")")
                projection.expressions[variable] = expression
            else:
                variable = self.variable()
            projection.variables.append(variable)
        if not projection.variables:
            self.fail("expected a variable")
        return projection

    def sub_select(self) -> Pattern:
        """[8] SubSelect. What it does not project gets names of its own."""
        outer, self.aggregates = self.aggregates, {}
        self.expect("SELECT")
        projection = self._select_clause()
        pattern = self._modified(self._where(), projection)
        self.aggregates = outer
        kept = {*projection.variables, self.graph}
        hidden = sorted(mentioned(pattern) - kept - self.generated, key=str)
        return rename(pattern, {variable: self.fresh(variable.value) for variable in hidden})

    def _modified(self, pattern: Pattern, projection: _Projection) -> Pattern:
        """Apply what comes after WHERE, in the order of 18.2.4; fills in what ``*`` stands for."""
        keys, pattern = self._group_clause(pattern)
        modifiers = self._modifiers()
        grouped = keys is not None or bool(self.aggregates)
        if grouped:
            pattern = self._grouped(pattern, tuple(keys or ()), projection, modifiers)
        if modifiers.having:
            pattern = self.filtered(pattern, conjunction(*modifiers.having))
        if self.accept("VALUES"):
            pattern = join(pattern, self.data_block())
        if not projection.variables:
            projection.variables = self._everything(pattern)
        for variable, expression in projection.expressions.items():
            pattern = self.extended(pattern, variable, expression)
        if not isinstance(self.graph, Variable):
            return _projected(pattern, tuple(projection.variables), projection.modifier, modifiers)
        if grouped or modifiers.slices:
            return Graph(self.graph, _projected(pattern, tuple(projection.variables), projection.modifier, modifiers))
        kept = (*projection.variables, self.graph)
        return _projected(self.in_graph(pattern), kept, projection.modifier, modifiers)

    def _everything(self, pattern: Pattern) -> list[Variable]:
        """List what ``*`` stands for, in the order of the text."""
        found = variables(pattern).possible - self.generated
        written = dict.fromkeys(token.text[1:] for token in self.tokens if token.kind is Kind.VAR)
        return [variable for name in written if (variable := Variable(name)) in found]

    def _group_clause(self, pattern: Pattern) -> tuple[list[Variable] | None, Pattern]:
        """[19] GroupClause. Keys that are expressions become variables first."""
        if not self.accept("GROUP"):
            return None, pattern
        self.expect("BY")
        keys: list[Variable] = []
        while True:
            if self.at_kind(Kind.VAR):
                keys.append(self.variable())
            elif self.accept("("):
                expression = self.expression()
                keys.append(self.variable() if self.accept("AS") else self.fresh("key"))
                self.expect(")")
                pattern = self.extended(pattern, keys[-1], expression)
            elif self.at_kind(Kind.IRIREF, Kind.PNAME) or self._at_built_in():
                expression = self.constraint()
                keys.append(self.fresh("key"))
                pattern = self.extended(pattern, keys[-1], expression)
            elif keys:
                return keys, pattern
            else:
                self.fail("expected what to group by")

    def _at_built_in(self) -> bool:
        modifier = self.at("HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")
        return self.at_kind(Kind.WORD) and not modifier

    def _samples(self, used: list[Expression], ungrouped: frozenset[Variable]) -> dict[Variable, Variable]:
        """Replace variables that are neither keys nor aggregates by a SAMPLE of them, as 18.2.4.1 has it."""
        outside = {part for one in used for part in walk(one) if isinstance(part, Variable)}
        sampled = sorted(outside & ungrouped, key=str)
        return {v: self.aggregate(Aggregate(AggregateFunction.SAMPLE, v)) for v in sampled}

    def _grouped(
        self, pattern: Pattern, keys: tuple[Variable, ...], projection: _Projection, modifiers: _Modifiers
    ) -> Pattern:
        """Group, and let the expressions after it see keys and aggregates only."""
        used = [*projection.expressions.values(), *modifiers.having, *(one.expression for one in modifiers.order)]
        samples = self._samples(used, variables(pattern).possible - {*keys, *projection.expressions})
        projection.expressions = {v: rename_expression(one, samples) for v, one in projection.expressions.items()}
        modifiers.having = [rename_expression(one, samples) for one in modifiers.having]
        modifiers.order = [
            OrderCondition(rename_expression(one.expression, samples), one.descending) for one in modifiers.order
        ]
        if any(one.distinct and one.expression is None for one in self.aggregates):
            # COUNT(DISTINCT *) counts solutions, and blank nodes of the query are not part of one.
            pattern = Project(pattern, tuple(sorted(variables(pattern).possible - self.generated, key=str)))
        return Group(pattern, keys, tuple((variable, aggregate) for aggregate, variable in self.aggregates.items()))

    def _modifiers(self) -> _Modifiers:
        """[18] SolutionModifier, after the group clause."""
        modifiers = _Modifiers()
        if self.accept("HAVING"):
            modifiers.having.append(self.constraint())
            while self._at_constraint():
                modifiers.having.append(self.constraint())
        modifiers.order = self._order_clause()
        modifiers.start, modifiers.length = self._limit_offset_clauses()
        return modifiers

    def _at_constraint(self) -> bool:
        return self.at("(") or self.at_kind(Kind.IRIREF, Kind.PNAME) or self._at_built_in()

    def _order_clause(self) -> list[OrderCondition]:
        """[23] OrderClause."""
        conditions: list[OrderCondition] = []
        if not self.accept("ORDER"):
            return conditions
        self.expect("BY")
        while True:
            if word := self.accept("ASC", "DESC"):
                conditions.append(OrderCondition(self.bracketted_expression(), word == "DESC"))
            elif self.at_kind(Kind.VAR):
                conditions.append(OrderCondition(self.variable()))
            elif self._at_constraint():
                conditions.append(OrderCondition(self.constraint()))
            else:
                return conditions

    def _limit_offset_clauses(self) -> tuple[int, int | None]:
        """[25] LimitOffsetClauses."""
        start, length = 0, None
        while word := self.accept("LIMIT", "OFFSET"):
            if not self.at_kind(Kind.INTEGER):
                self.fail("expected a number")
            number = int(self.advance().text)
            if word == "LIMIT":
                length = number
            else:
                start = number
        return start, length


def _projected(pattern: Pattern, kept: tuple[Variable, ...], modifier: str, modifiers: _Modifiers) -> Pattern:
    if modifiers.order:
        pattern = OrderBy(pattern, tuple(modifiers.order))
    pattern = Project(pattern, tuple(dict.fromkeys(kept)))
    if modifier:
        pattern = Distinct(pattern) if modifier == "DISTINCT" else Reduced(pattern)
    return Slice(pattern, modifiers.start, modifiers.length) if modifiers.slices else pattern
