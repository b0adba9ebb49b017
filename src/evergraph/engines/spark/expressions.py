"""Expressions as columns: what SQL means by the same, natively; everything else in Python, on Arrow arrays.

A condition is true, false, or null for an error: the three-valued logic of SPARQL is that of SQL.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import and_, or_
from typing import Any, NoReturn, cast

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from evergraph.engines.local.expressions import used_columns
from evergraph.engines.spark.rows import term_of
from evergraph.plan.nodes import Variables
from evergraph.sparql.algebra import (
    TRUE,
    And,
    Bound,
    Compare,
    Comparison,
    Exists,
    Expression,
    Not,
    Or,
)
from evergraph.sparql.expressions import Compiler, Environment, Evaluator, Layout
from evergraph.terms import BlankNode, Literal, NamedNode, Term, Triple, Variable, term_text

Columns = Mapping[Variable, Column]
_REMEMBERED = 1 << 16


class Expressions:
    """Compiles the expressions of one view: NOW() is the moment of its registration."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def condition(self, expression: Expression, columns: Columns) -> Column:
        """Return whether an expression is true; an error is null."""
        match expression:
            case And(operands):
                return reduce(and_, [self.condition(one, columns) for one in operands])
            case Or(operands) if all(map(_is_native, operands)):
                return reduce(or_, [self.condition(one, columns) for one in operands])
            case Not(operand) if _is_native(operand):
                return ~self.condition(operand, columns)
            case Bound(variable):
                return columns[variable].isNotNull() if variable in columns else sf.lit(False)
            case Compare(operator, left, right) if _is_native(expression):
                equal = _native(left, columns) == _native(right, columns)
                return equal if operator is Comparison.EQUAL else ~equal
            case _ if expression == TRUE:
                return sf.lit(True)
            case _:
                used = used_columns(expression, tuple(columns), frozenset())
                compiled = _Condition(expression, used, self._environment)
                return _called(compiled, "boolean", [columns[one] for one in used])

    def value(self, expression: Expression, columns: Columns, computed: frozenset[Variable] = frozenset()) -> Column:
        """Return the text of the value of an expression; null for an error."""
        if isinstance(expression, Variable | NamedNode | BlankNode | Literal | Triple):
            return _native(expression, columns)
        used = used_columns(expression, tuple(columns), computed)
        return _called(_Value(expression, used, computed, self._environment), "string", [columns[one] for one in used])


def evaluator(expression: Expression, columns: Variables, environment: Environment) -> Evaluator:
    """Return the function from rows of terms to the value of an expression."""
    return Compiler(Layout(columns), environment, _no_exists).term(expression)


def _is_native(expression: Expression) -> bool:
    """Tell whether SQL gives a condition the same meaning: where one side is an IRI, equal means the same term."""
    match expression:
        case And(operands) | Or(operands):
            return all(map(_is_native, operands))
        case Not(operand):
            return _is_native(operand)
        case Bound():
            return True
        case Compare(operator, left, right):
            sides = (left, right)
            return (
                operator in (Comparison.EQUAL, Comparison.NOT_EQUAL)
                and any(isinstance(side, NamedNode) for side in sides)
                and all(isinstance(side, NamedNode | Variable) for side in sides)
            )
        case _:
            return expression == TRUE


def _native(expression: Expression, columns: Columns) -> Column:
    if isinstance(expression, Variable):
        return columns[expression] if expression in columns else sf.lit(None).cast("string")
    return sf.lit(term_text(cast(Term, expression)))


class _Compiled:
    """An expression that is compiled where it is called, once for each task."""

    def __init__(
        self, expression: Expression, used: Variables, computed: frozenset[Variable], environment: Environment
    ) -> None:
        self._parts = expression, used, computed, environment
        self._known: dict[tuple[str | None, ...], Any] = {}
        self._function: Callable[[tuple[Term | None, ...]], Any] | None = None

    def __call__(self, *row: str | None) -> Any:
        known = self._known
        if row in known:
            return known[row]
        if self._function is None:
            expression, used, computed, environment = self._parts
            self._function = self.compile(Compiler(Layout(used, computed), environment, _no_exists), expression)
        if len(known) >= _REMEMBERED:
            known.clear()
        value = known[row] = self._function(tuple([None if text is None else term_of(text) for text in row]))
        return value

    def compile(self, compiler: Compiler, expression: Expression) -> Callable[[tuple[Term | None, ...]], Any]:
        """Return the function of a row of terms."""
        raise NotImplementedError


class _Value(_Compiled):
    def compile(self, compiler: Compiler, expression: Expression) -> Callable[[tuple[Term | None, ...]], Any]:
        term = compiler.term(expression)
        return lambda row: None if (found := term(row)) is None else term_text(found)


class _Condition(_Compiled):
    def __init__(self, expression: Expression, used: Variables, environment: Environment) -> None:
        super().__init__(expression, used, frozenset(), environment)

    def compile(self, compiler: Compiler, expression: Expression) -> Callable[[tuple[Term | None, ...]], Any]:
        return compiler.condition(expression)


def _called(function: _Compiled, type_: str, arguments: list[Column]) -> Column:
    """Call a Python function row by row, inside of Arrow batches."""
    if not arguments:
        return sf.lit(function()).cast(type_)
    arrow_type = pa.bool_() if type_ == "boolean" else pa.string()

    def run(rows: pa.Array) -> pa.Array:
        return pa.array(list(map(function, *[column.to_pylist() for column in rows.flatten()])), arrow_type)

    udf = cast(Any, sf).arrow_udf(run, type_)
    return cast(Column, udf(sf.struct(*[argument.alias(f"a{n}") for n, argument in enumerate(arguments)])))


def _no_exists(exists: Exists, layout: Layout) -> NoReturn:
    raise AssertionError(f"lowering has left {exists}")
