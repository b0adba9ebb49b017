"""Views on Spark: a standing query, its plan, and its columns."""

from dataclasses import dataclass, field
from functools import cached_property

from evergraph.plan.centres import Centre, centre_of
from evergraph.plan.distribution import island_reason
from evergraph.plan.forms import BOOLEAN, whole_plan
from evergraph.plan.lower import Lowering, refuse_unmaintainable
from evergraph.plan.nodes import Plan, QuadPattern, Variables
from evergraph.plan.queries import lower_query
from evergraph.plan.reach import ANYTHING, reach
from evergraph.sparql.algebra import TRIPLE_COLUMNS, Ask, Describe, Query, Select
from evergraph.sparql.expressions import Environment
from evergraph.terms import DEFAULT_GRAPH


@dataclass(frozen=True)
class SparkView:
    """A standing query. NOW() is the moment of its ``environment``."""

    name: str
    query: Query
    environment: Environment = field(default_factory=Environment)

    @property
    def variables(self) -> Variables:
        """What the columns of a row are."""
        match self.query:
            case Select(variables=variables):
                return variables
            case Ask():
                return (BOOLEAN,)
            case _:
                return TRIPLE_COLUMNS

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, different also where case does not count."""
        names: list[str] = []
        for variable in self.variables:
            name = variable.value
            while name.lower() in {one.lower() for one in names} | {"weight"}:
                name += "_"
            names.append(name)
        return tuple(names)

    @cached_property
    def plan(self) -> Plan:
        """The plan of the whole result, or of the solutions if the view is an island."""
        refuse_unmaintainable(self.query.pattern)
        lowering = Lowering(self.query.dataset)
        return whole_plan(self.query, lower_query(self.query, lowering), lowering)

    @cached_property
    def island(self) -> str | None:
        """Why one task must maintain the view; None if it is compiled to DataFrames."""
        return island_reason(self.query, self.plan)

    @cached_property
    def centre(self) -> Centre | None:
        """The variable by whose values tasks share the view; None if they cannot."""
        return None if self.island is not None else centre_of(self.plan)

    @cached_property
    def patterns(self) -> tuple[QuadPattern, ...]:
        """Patterns of all quads that the result can depend on."""
        lowering = Lowering(self.query.dataset)
        found = reach(self.plan, lowering)
        context = lowering.context(DEFAULT_GRAPH)
        if isinstance(self.query, Describe) and context is not None:
            found = (*found, QuadPattern(*ANYTHING, context))
        return found
