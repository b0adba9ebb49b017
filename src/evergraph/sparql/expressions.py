"""Expressions to Python functions of a row: compiled once for each query, called once for each row.

A row is a tuple of terms, one for each column, None where unbound. An error is None too: an unbound variable is an
error wherever its value is asked for. A condition is true, false or None, with the three-valued logic of
https://www.w3.org/TR/sparql11-query/#evaluation.
"""

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn, TypeAlias, assert_never
from uuid import UUID, uuid4

from evergraph.errors import UnsupportedQuery
from evergraph.sparql import numbers
from evergraph.sparql.algebra import (
    VOLATILE,
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
    Plus,
)
from evergraph.sparql.casts import caster
from evergraph.sparql.functions import PURE_FUNCTIONS, number_of, simple_text
from evergraph.sparql.numbers import Numeric
from evergraph.sparql.scope import walk
from evergraph.sparql.values import boolean, compare, effective_boolean_value, equal
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Term, Triple, Variable

Row: TypeAlias = tuple[Term | None, ...]
Evaluator: TypeAlias = Callable[[Row], Term | None]
Condition: TypeAlias = Callable[[Row], bool | None]


def _now() -> Literal:
    return Literal(datetime.now(UTC).isoformat().replace("+00:00", "Z"), datatype=NamedNode(XSD + "dateTime"))


@dataclass(frozen=True, slots=True)
class Environment:
    """What expressions see of the world besides their row. NOW() is one moment for the whole query."""

    now: Literal = field(default_factory=_now)
    next_random: Callable[[], float] = random.random
    next_uuid: Callable[[], UUID] = uuid4


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a row. ``computed`` are those that do not tell solutions apart for ``BNODE(label)``."""

    columns: tuple[Variable, ...]
    computed: frozenset[Variable] = frozenset()

    def slot(self, variable: Variable) -> int | None:
        """Return the place of a variable in a row; None if it is never bound."""
        return self.columns.index(variable) if variable in self.columns else None


def is_volatile(expression: Expression) -> bool:
    """Tell whether the value may differ between two solutions that agree in everything."""
    return any(isinstance(part, Call) and part.function in VOLATILE for part in walk(expression))


class Compiler:
    """Compiles expressions over rows of one layout. ``exists`` gives EXISTS its meaning."""

    def __init__(
        self,
        layout: Layout,
        environment: Environment,
        exists: Callable[[Exists, Layout], Callable[[Row], bool]],
    ) -> None:
        self.layout = layout
        self.environment = environment
        self.exists = exists

    def term(self, expression: Expression) -> Evaluator:
        """Compile an expression to a function that returns its value."""
        match expression:
            case NamedNode() | BlankNode() | Literal() | Triple():
                return lambda row: expression
            case Variable():
                slot = self.layout.slot(expression)
                return (lambda row: None) if slot is None else (lambda row: row[slot])
            case And() | Or() | Not() | Compare() | In() | Bound() | Exists():
                return _as_term(self.condition(expression))
            case Calculate():
                return self._calculation(expression)
            case Negate(operand):
                return self._number(operand, numbers.negate)
            case Plus(operand):
                return self._number(operand, lambda number: number)
            case If(condition, then, otherwise):
                test, yes, no = self.condition(condition), self.term(then), self.term(otherwise)
                return lambda row: None if (holds := test(row)) is None else yes(row) if holds else no(row)
            case Coalesce(operands):
                choices = tuple(map(self.term, operands))
                return lambda row: next((term for one in choices if (term := one(row)) is not None), None)
            case Call():
                return self._call(expression)
            case Cast(datatype, operand):
                return _apply(caster(datatype), (self.term(operand),))
            case ExtensionCall(function):
                return _refuse(function)
            case _:
                assert_never(expression)

    def condition(self, expression: Expression) -> Condition:
        """Compile an expression to a function that returns its effective boolean value."""
        match expression:
            case And(operands):
                return _connective(tuple(map(self.condition, operands)), decisive=False)
            case Or(operands):
                return _connective(tuple(map(self.condition, operands)), decisive=True)
            case Not(operand):
                inner = self.condition(operand)
                return lambda row: None if (holds := inner(row)) is None else not holds
            case Compare(operator, left, right):
                return _comparison(operator, self.term(left), self.term(right))
            case In(operand, members):
                return _membership(self.term(operand), tuple(map(self.term, members)))
            case Bound(variable):
                slot = self.layout.slot(variable)
                return (lambda row: False) if slot is None else (lambda row: row[slot] is not None)
            case Exists():
                return self.exists(expression, self.layout)
            case _:
                value = self.term(expression)
                return lambda row: effective_boolean_value(value(row))

    def _calculation(self, expression: Calculate) -> Evaluator:
        function = {
            Arithmetic.ADD: numbers.add,
            Arithmetic.SUBTRACT: numbers.subtract,
            Arithmetic.MULTIPLY: numbers.multiply,
            Arithmetic.DIVIDE: numbers.divide,
        }[expression.operator]

        def calculate(left: Term, right: Term) -> Term | None:
            a, b = number_of(left), number_of(right)
            result = None if a is None or b is None else function(a, b)
            return None if result is None else numbers.to_literal(result)

        return _apply(calculate, (self.term(expression.left), self.term(expression.right)))

    def _number(self, operand: Expression, function: Callable[[Numeric], Numeric]) -> Evaluator:
        def apply(term: Term) -> Term | None:
            number = number_of(term)
            return None if number is None else numbers.to_literal(function(number))

        return _apply(apply, (self.term(operand),))

    def _call(self, call: Call) -> Evaluator:
        arguments = tuple(map(self.term, call.arguments))
        environment = self.environment
        match call.function:
            case Function.NOW:
                return lambda row: environment.now
            case Function.RAND:
                return lambda row: numbers.to_literal(numbers.double(environment.next_random()))
            case Function.UUID:
                return lambda row: NamedNode(f"urn:uuid:{environment.next_uuid()}")
            case Function.STRUUID:
                return lambda row: Literal(str(environment.next_uuid()))
            case Function.BNODE if arguments:
                return self._labelled_blank_node(arguments[0])
            case Function.BNODE:
                return lambda row: BlankNode(environment.next_uuid().hex)
            case function:
                return _apply(PURE_FUNCTIONS[function], arguments)

    def _labelled_blank_node(self, label: Evaluator) -> Evaluator:
        """Make one blank node for a label and a solution; what was computed for a solution does not change it."""
        names = sorted(column.value for column in self.layout.columns if column not in self.layout.computed)
        slots = [(name, self.layout.columns.index(Variable(name))) for name in names]

        def make(row: Row) -> Term | None:
            text = None if (term := label(row)) is None else simple_text(term)
            if text is None:
                return None
            solution = "\n".join(f"{name} {row[slot]}" for name, slot in slots if row[slot] is not None)
            return BlankNode(hashlib.sha256(f"{text}\0{solution}".encode()).hexdigest()[:32])

        return make


def _refuse(function: NamedNode) -> NoReturn:
    raise UnsupportedQuery(
        f"the function {function} is not known",
        hint="Evergraph has the functions of SPARQL 1.1 and the xsd: casts; rewrite the query with these.",
    )


def _as_term(condition: Condition) -> Evaluator:
    return lambda row: None if (holds := condition(row)) is None else boolean(holds)


def _apply(function: Callable[..., Term | None], arguments: tuple[Evaluator, ...]) -> Evaluator:
    """Call a function unless an argument is an error; the usual numbers of arguments have no loop."""
    match arguments:
        case (one,):
            return lambda row: None if (a := one(row)) is None else function(a)
        case (one, two):
            return lambda row: None if (a := one(row)) is None or (b := two(row)) is None else function(a, b)
        case _:

            def call(row: Row) -> Term | None:
                values = [argument(row) for argument in arguments]
                return None if None in values else function(*values)

            return call


def _connective(operands: tuple[Condition, ...], *, decisive: bool) -> Condition:
    """``||`` is decided by a true operand, ``&&`` by a false one; else an error anywhere is an error."""

    def decide(row: Row) -> bool | None:
        result: bool | None = not decisive
        for operand in operands:
            holds = operand(row)
            if holds is decisive:
                return decisive
            if holds is None:
                result = None
        return result

    return decide


def _comparison(operator: Comparison, left: Evaluator, right: Evaluator) -> Condition:
    test: Callable[[Term, Term], bool | None]
    match operator:
        case Comparison.EQUAL:
            test = equal
        case Comparison.NOT_EQUAL:

            def test(a: Term, b: Term) -> bool | None:
                return None if (same := equal(a, b)) is None else not same
        case Comparison.LESS:
            test = _ordered(lambda sign: sign < 0)
        case Comparison.GREATER:
            test = _ordered(lambda sign: sign > 0)
        case Comparison.LESS_EQUAL:
            test = _ordered(lambda sign: sign <= 0)
        case Comparison.GREATER_EQUAL:
            test = _ordered(lambda sign: sign >= 0)
        case _:
            assert_never(operator)
    return lambda row: None if (a := left(row)) is None or (b := right(row)) is None else test(a, b)


def _ordered(accept: Callable[[float], bool]) -> Callable[[Term, Term], bool | None]:
    return lambda left, right: None if (sign := compare(left, right)) is None else accept(sign)


def _membership(operand: Evaluator, members: tuple[Evaluator, ...]) -> Condition:
    def test(row: Row) -> bool | None:
        term = operand(row)
        result: bool | None = False
        for member in members:
            other = member(row)
            same = None if term is None or other is None else equal(term, other)
            if same:
                return True
            if same is None:
                result = None
        return result

    return test
