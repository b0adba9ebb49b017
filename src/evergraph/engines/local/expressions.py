"""Expressions on rows of ids. The value for one choice of ids is computed once and remembered."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from evergraph.engines.local.dictionary import UNBOUND, Dictionary, Row
from evergraph.engines.local.rows import merger, picker
from evergraph.plan.nodes import Variables
from evergraph.sparql.algebra import TRUE, Call, Exists, Expression, Function
from evergraph.sparql.expressions import Compiler, Environment, Layout
from evergraph.sparql.scope import free, walk
from evergraph.terms import Term, Variable

_REMEMBERED = 1 << 16
T = TypeVar("T")


class ExpressionCompiler:
    """Compiles the expressions of one view: NOW() is the moment of its registration."""

    def __init__(self, dictionary: Dictionary, environment: Environment) -> None:
        self._dictionary = dictionary
        self._environment = environment

    def condition(self, expression: Expression, columns: Variables) -> Callable[[Row], bool]:
        """Return a test of rows: true, or not (false or an error)."""
        used = used_columns(expression, columns, frozenset())
        test = self._compiler(used, frozenset()).condition(expression)
        return _remembered(lambda row: test(row) is True, self._dictionary, picker(columns, used))

    def value(
        self, expression: Expression, columns: Variables, computed: frozenset[Variable] = frozenset()
    ) -> Callable[[Row], int]:
        """Return a function from rows to the id of the value, `UNBOUND` for an error."""
        if isinstance(expression, Variable):
            if expression not in columns:
                return lambda row: UNBOUND
            slot = columns.index(expression)
            return lambda row: row[slot]
        used = used_columns(expression, columns, computed)
        term = self._compiler(used, computed).term(expression)
        encode = self._dictionary.encode

        def value(row: tuple[Term | None, ...]) -> int:
            found = term(row)
            return UNBOUND if found is None else encode(found)

        return _remembered(value, self._dictionary, picker(columns, used))

    def pair_condition(
        self, expression: Expression, left: Variables, right: Variables
    ) -> Callable[[Row, Row], bool] | None:
        """Return a test of two rows that are merged first; None if it is always true."""
        if expression == TRUE:
            return None
        columns = tuple(dict.fromkeys((*left, *right)))
        used = used_columns(expression, columns, frozenset())
        merge = merger(left, right, used)
        test = self.condition(expression, used)
        return lambda row, other: test(merge(row, other))

    def _compiler(self, columns: Variables, computed: frozenset[Variable]) -> Compiler:
        return Compiler(Layout(columns, computed), self._environment, _no_exists)


def used_columns(expression: Expression, columns: Variables, computed: frozenset[Variable]) -> Variables:
    """Return the columns on which a value depends; BNODE(label) depends on all that make a solution."""
    names = free(expression)
    if any(isinstance(part, Call) and part.function is Function.BNODE for part in walk(expression)):
        return tuple(column for column in columns if column not in computed or column in names)
    return tuple(column for column in columns if column in names)


def _no_exists(exists: Exists, layout: Layout) -> NoReturn:
    raise AssertionError(f"lowering has left {exists}")


def _remembered(
    function: Callable[[tuple[Term | None, ...]], T], dictionary: Dictionary, pick: Callable[[Row], Row]
) -> Callable[[Row], T]:
    known: dict[Row, T] = {}
    decode = dictionary.decode_row

    def lookup(row: Row) -> T:
        key = pick(row)
        found = known.get(key)
        if found is None:
            if len(known) >= _REMEMBERED:
                known.clear()
            found = known[key] = function(decode(key))
        return found

    return lookup
