"""``evergraph explain``: what a standing query is, and what it takes to maintain it."""

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from evergraph.cli.inputs import read_text
from evergraph.cli.link import Link, explain_linkset_file
from evergraph.cli.watch import Init, QueryFile, initial_data, parse
from evergraph.engines.local.engine import LocalEngine
from evergraph.engines.local.forecasts import measure
from evergraph.engines.local.optimizer import Forecast
from evergraph.errors import UnsupportedQuery
from evergraph.plan import report
from evergraph.plan.explain import Explanation
from evergraph.plan.explain import explain as explain_query
from evergraph.plan.notation import Notation, prefixes


def explain(
    query: QueryFile,
    init: Init = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    link: Link = None,
) -> None:
    """Show how a standing query would be maintained; or, of a linkset, how pairs are found and why two are linked.

    Tells the class of its graph patterns and their decomposition, the delta plan with the law and the state of each
    operator, what is re-run in part and why, or why the query is refused. Nothing is run, unless there are data to
    begin with: then also the state that they need, and which way large changes would go, by what some of them cost.

    **Examples**

    `evergraph explain people.rq`

    `evergraph explain people.rq --init dump.nt.gz`

    `evergraph explain people.rq --json | jq .rerun`

    `evergraph explain mints.toml --link http://nomisma.org/id/rome https://pleiades.stoa.org/places/423025`
    """
    if query.endswith(".toml"):
        explain_linkset_file(query, link, as_json)
        return
    source = read_text(query)
    explanation = explain_text(query, source)
    entries, forecasts = None, list[Forecast]()
    if init and explanation.refused is None:
        view, forecasts = measure(parse(query, source), initial_data(init).added)
        if view.failed is not None:
            raise view.failed
        entries = view.size()
    if as_json:
        document = report.to_json(explanation)
        if entries is not None:
            document |= {"entries": entries, "large_changes": [asdict(one) for one in forecasts]}
        sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
        return
    text = report.text(explanation, entries=entries, forecasts=forecasts)
    console = Console()
    if console.is_terminal:
        console.print(styled(text), soft_wrap=True, end="")
    else:
        sys.stdout.write(text)


def explain_text(name: str, text: str) -> Explanation:
    """Explain a query that was read from a file of that name."""
    parsed = parse(name, text)
    notation = Notation(prefixes(text))
    try:
        return explain_query(parsed, LocalEngine().register(parsed).plan, notation)
    except UnsupportedQuery as error:
        return explain_query(parsed, error, notation)


def styled(text: str) -> Text:
    """Set off headings, laws and the words that are the same everywhere."""
    shown = Text(text)
    shown.highlight_regex(rf"(?m)^({'|'.join(report.HEADINGS)})$", "bold")
    shown.highlight_regex(r"(?m)(?<=· )[a-z ]+$", "cyan")
    shown.highlight_regex(r"(?m)^ +(keeps|least state:|part \d+:|way out:)", "dim")
    return shown
