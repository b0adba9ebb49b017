"""``evergraph explain``: what a standing query is, and what it takes to maintain it."""

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from evergraph.cli.inputs import read_text
from evergraph.cli.watch import QueryFile, parse
from evergraph.engines.local.engine import LocalEngine
from evergraph.errors import UnsupportedQuery
from evergraph.plan import report
from evergraph.plan.explain import Explanation
from evergraph.plan.explain import explain as explain_query
from evergraph.plan.notation import Notation, prefixes


def explain(
    query: QueryFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show how a standing query would be maintained; nothing is run.

    Tells the class of its graph patterns and their decomposition, the delta plan with the law and the state of each
    operator, what is re-run in part and why, or why the query is refused.

    **Examples**

    `evergraph explain people.rq`

    `evergraph explain people.rq --json | jq .rerun`
    """
    explanation = explain_text(query, read_text(query))
    if as_json:
        sys.stdout.write(json.dumps(report.to_json(explanation), ensure_ascii=False, indent=2) + "\n")
        return
    text = report.text(explanation)
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
