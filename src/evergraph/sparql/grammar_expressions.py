"""Grammar rules for expressions (https://www.w3.org/TR/sparql11-query/#sparqlGrammar, rules 69–72 and 110–128)."""

from abc import abstractmethod

from evergraph.sparql.algebra import (
    Aggregate,
    AggregateFunction,
    And,
    Arithmetic,
    Bound,
    Calculate,
    Call,
    Cast,
    Coalesce,
    Compare,
    Comparison,
    Exists,
    Expression,
    ExtensionCall,
    Function,
    If,
    In,
    Negate,
    Not,
    Or,
    Pattern,
    Plus,
)
from evergraph.sparql.grammar_terms import TermGrammar
from evergraph.sparql.lexer import Kind
from evergraph.terms import XSD, Literal, NamedNode, Variable

CASTS = frozenset(
    NamedNode(XSD + name)
    for name in (
        *("boolean", "double", "float", "decimal", "integer", "dateTime", "string", "date", "time", "duration"),
        *("dayTimeDuration", "yearMonthDuration"),
    )
)
"""The XPath constructor functions: those of SPARQL 1.1, and the ones that every implementation has besides."""

_COMPARISONS = tuple(operator.value for operator in Comparison)

_ARITIES: dict[Function, tuple[int, ...]] = {
    **dict.fromkeys(Function, (1,)),
    **dict.fromkeys((Function.RAND, Function.NOW, Function.UUID, Function.STRUUID), (0,)),
    Function.BNODE: (0, 1),
    **dict.fromkeys((Function.LANGMATCHES, Function.CONTAINS, Function.STRSTARTS, Function.STRENDS), (2,)),
    **dict.fromkeys((Function.STRBEFORE, Function.STRAFTER, Function.STRLANG, Function.STRDT), (2,)),
    Function.SAMETERM: (2,),
    Function.REGEX: (2, 3),
    Function.SUBSTR: (2, 3),
    Function.REPLACE: (3, 4),
    Function.CONCAT: (),
}
"""How many arguments each function takes; any number if none is given."""

_FUNCTIONS = {function.name: function for function in Function} | {"URI": Function.IRI, "ISURI": Function.ISIRI}
_AGGREGATES = {function.name: function for function in AggregateFunction}


class ExpressionGrammar(TermGrammar):
    """Expressions. An aggregate becomes a variable; what it computes is noted in ``aggregates``."""

    def __init__(self, text: str, base: str = "") -> None:
        super().__init__(text, base)
        self.aggregates: dict[Aggregate, Variable] = {}

    @abstractmethod
    def group_graph_pattern(self) -> Pattern:
        """[53] GroupGraphPattern."""

    def expression(self) -> Expression:
        """[110] Expression."""
        operands = [self._conditional_and()]
        while self.accept("||"):
            operands.append(self._conditional_and())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def bracketted_expression(self) -> Expression:
        """[120] BrackettedExpression."""
        self.expect("(")
        expression = self.expression()
        self.expect(")")
        return expression

    def constraint(self) -> Expression:
        """[69] Constraint."""
        if self.at("("):
            return self.bracketted_expression()
        return self._function_call(self.iri()) if self.at_kind(Kind.IRIREF, Kind.PNAME) else self._built_in_call()

    def _conditional_and(self) -> Expression:
        operands = [self._relational()]
        while self.accept("&&"):
            operands.append(self._relational())
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _relational(self) -> Expression:
        left = self._additive()
        if operator := self.accept(*_COMPARISONS):
            return Compare(Comparison(operator), left, self._additive())
        if self.accept("IN"):
            return In(left, self._expression_list())
        if self.at("NOT") and self.at("IN", ahead=1):
            self.expect("NOT")
            self.expect("IN")
            return Not(In(left, self._expression_list()))
        return left

    def _additive(self) -> Expression:
        left = self._multiplicative()
        while operator := self.accept("+", "-"):
            left = Calculate(Arithmetic(operator), left, self._multiplicative())
        return left

    def _multiplicative(self) -> Expression:
        left = self._unary()
        while operator := self.accept("*", "/"):
            left = Calculate(Arithmetic(operator), left, self._unary())
        return left

    def _unary(self) -> Expression:
        if self.at_signed_number():
            return self.literal()
        match self.accept("!", "+", "-"):
            case "!":
                return Not(self._unary())
            case "+":
                return Plus(self._unary())
            case "-":
                return Negate(self._unary())
            case _:
                return self._primary()

    def _primary(self) -> Expression:
        if self.at("("):
            return self.bracketted_expression()
        if self.at_kind(Kind.VAR):
            return self.variable()
        if self.at_literal():
            return self.literal()
        if self.at_kind(Kind.IRIREF, Kind.PNAME):
            iri = self.iri()
            return self._function_call(iri) if self.at("(") else iri
        return self._built_in_call()

    def _expression_list(self) -> tuple[Expression, ...]:
        self.expect("(")
        members: list[Expression] = []
        while not self.accept(")"):
            if members:
                self.expect(",")
            members.append(self.expression())
        return tuple(members)

    def _function_call(self, function: NamedNode) -> Expression:
        start = self.token
        if self.at("DISTINCT", ahead=1):
            self.fail("functions outside of SPARQL cannot be aggregates here")
        arguments = self._expression_list()
        if function not in CASTS:
            return ExtensionCall(function, arguments)
        if len(arguments) != 1:
            self.fail(f"{function} takes one argument", start)
        return Cast(function, arguments[0])

    def _built_in_call(self) -> Expression:
        token = self.token
        name = self.advance().text.upper() if token.kind is Kind.WORD else self.fail("expected an expression")
        match name:
            case "BOUND":
                self.expect("(")
                variable = self.variable()
                self.expect(")")
                return Bound(variable)
            case "EXISTS":
                return Exists(self.group_graph_pattern())
            case "NOT":
                self.expect("EXISTS")
                return Not(Exists(self.group_graph_pattern()))
            case "COALESCE":
                return Coalesce(self._expression_list())
            case "IF":
                match self._expression_list():
                    case (condition, then, otherwise):
                        return If(condition, then, otherwise)
                    case _:
                        self.fail("IF takes three arguments", token)
        if name in _AGGREGATES:
            return self._aggregate(_AGGREGATES[name])
        if name not in _FUNCTIONS:
            self.fail("expected a function", token)
        function, arguments = _FUNCTIONS[name], self._expression_list()
        if _ARITIES[function] and len(arguments) not in _ARITIES[function]:
            self.fail(f"wrong number of arguments for {name}", token)
        if function is Function.IRI:
            arguments = (*arguments, Literal(self.base))
        return Call(function, arguments)

    def _aggregate(self, function: AggregateFunction) -> Variable:
        """[127] Aggregate; equal aggregates share one variable."""
        self.expect("(")
        distinct = bool(self.accept("DISTINCT"))
        everything = function is AggregateFunction.COUNT and bool(self.accept("*"))
        expression = None if everything else self.expression()
        separator = " "
        if function is AggregateFunction.GROUP_CONCAT and self.accept(";"):
            self.expect("SEPARATOR")
            self.expect("=")
            separator = self.string()
        self.expect(")")
        return self.aggregate(Aggregate(function, expression, distinct, separator))

    def aggregate(self, aggregate: Aggregate) -> Variable:
        """Return the variable for an aggregate of the query level that is being read."""
        if aggregate not in self.aggregates:
            self.aggregates[aggregate] = self.fresh(aggregate.function.name.lower())
        return self.aggregates[aggregate]
