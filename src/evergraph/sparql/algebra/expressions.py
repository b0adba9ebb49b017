"""Expressions and aggregates."""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, TypeAlias

from evergraph.terms import XSD, Literal, NamedNode, Term, Variable

if TYPE_CHECKING:
    from evergraph.sparql.algebra.patterns import Pattern


class Comparison(StrEnum):
    """The operators that compare values (https://www.w3.org/TR/sparql11-query/#OperatorMapping)."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    GREATER = ">"
    LESS_EQUAL = "<="
    GREATER_EQUAL = ">="


class Arithmetic(StrEnum):
    """The operators on numbers (https://www.w3.org/TR/sparql11-query/#OperatorMapping)."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


class Function(Enum):
    """The built-in functions that need all their arguments (https://www.w3.org/TR/sparql11-query/#SparqlOps)."""

    STR = auto()
    LANG = auto()
    LANGMATCHES = auto()
    DATATYPE = auto()
    IRI = auto()
    BNODE = auto()
    RAND = auto()
    ABS = auto()
    CEIL = auto()
    FLOOR = auto()
    ROUND = auto()
    CONCAT = auto()
    STRLEN = auto()
    UCASE = auto()
    LCASE = auto()
    ENCODE_FOR_URI = auto()
    CONTAINS = auto()
    STRSTARTS = auto()
    STRENDS = auto()
    STRBEFORE = auto()
    STRAFTER = auto()
    YEAR = auto()
    MONTH = auto()
    DAY = auto()
    HOURS = auto()
    MINUTES = auto()
    SECONDS = auto()
    TIMEZONE = auto()
    TZ = auto()
    NOW = auto()
    UUID = auto()
    STRUUID = auto()
    MD5 = auto()
    SHA1 = auto()
    SHA256 = auto()
    SHA384 = auto()
    SHA512 = auto()
    STRLANG = auto()
    STRDT = auto()
    SAMETERM = auto()
    ISIRI = auto()
    ISBLANK = auto()
    ISLITERAL = auto()
    ISNUMERIC = auto()
    REGEX = auto()
    SUBSTR = auto()
    REPLACE = auto()


VOLATILE = frozenset({Function.RAND, Function.NOW, Function.UUID, Function.STRUUID, Function.BNODE})
"""The functions whose value does not follow from their arguments."""


@dataclass(frozen=True, slots=True)
class And:
    """``&&`` over two or more operands (https://www.w3.org/TR/sparql11-query/#func-logical-and)."""

    operands: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """``||`` over two or more operands (https://www.w3.org/TR/sparql11-query/#func-logical-or)."""

    operands: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """``!`` (https://www.w3.org/TR/xpath-functions/#func-not)."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of values (https://www.w3.org/TR/sparql11-query/#OperatorMapping)."""

    operator: Comparison
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Calculate:
    """An operation on two numbers (https://www.w3.org/TR/sparql11-query/#OperatorMapping)."""

    operator: Arithmetic
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Negate:
    """Unary minus (https://www.w3.org/TR/xpath-functions/#func-numeric-unary-minus)."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Plus:
    """Unary plus: the number itself, an error for all else (https://www.w3.org/TR/xpath-functions/#func-numeric-unary-plus)."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class In:
    """``IN`` (https://www.w3.org/TR/sparql11-query/#func-in)."""

    operand: "Expression"
    members: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class If:
    """``IF`` (https://www.w3.org/TR/sparql11-query/#func-if)."""

    condition: "Expression"
    then: "Expression"
    otherwise: "Expression"


@dataclass(frozen=True, slots=True)
class Coalesce:
    """``COALESCE`` (https://www.w3.org/TR/sparql11-query/#func-coalesce)."""

    operands: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Bound:
    """``BOUND`` (https://www.w3.org/TR/sparql11-query/#func-bound)."""

    variable: Variable


@dataclass(frozen=True, slots=True)
class Exists:
    """``EXISTS`` (https://www.w3.org/TR/sparql11-query/#func-filter-exists); see `evergraph.sparql.rewrite`."""

    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function of its arguments (https://www.w3.org/TR/sparql11-query/#SparqlOps).

    IRI has a second argument: the base that is in force where it is written.
    """

    function: Function
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Cast:
    """An XPath constructor function (https://www.w3.org/TR/sparql11-query/#FunctionMapping)."""

    datatype: NamedNode
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class ExtensionCall:
    """A function that is known by its IRI only (https://www.w3.org/TR/sparql11-query/#extensionFunctions)."""

    function: NamedNode
    arguments: "tuple[Expression, ...]"


Expression: TypeAlias = (
    Term
    | Variable
    | And
    | Or
    | Not
    | Compare
    | Calculate
    | Negate
    | Plus
    | In
    | If
    | Coalesce
    | Bound
    | Exists
    | Call
    | Cast
    | ExtensionCall
)

TRUE = Literal("true", datatype=NamedNode(XSD + "boolean"))


def conjunction(*operands: Expression) -> Expression:
    """Combine expressions with ``&&``; true for none."""
    match operands:
        case ():
            return TRUE
        case (single,):
            return single
        case _:
            return And(operands)


class AggregateFunction(Enum):
    """The set functions (https://www.w3.org/TR/sparql11-query/#setFunctions)."""

    COUNT = auto()
    SUM = auto()
    AVG = auto()
    MIN = auto()
    MAX = auto()
    SAMPLE = auto()
    GROUP_CONCAT = auto()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate (https://www.w3.org/TR/sparql11-query/#defn_algAggregation); only COUNT(*) has no expression."""

    function: AggregateFunction
    expression: Expression | None
    distinct: bool = False
    separator: str = " "
