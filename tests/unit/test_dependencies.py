"""What the package imports is what it asks for: the development set-up holds more than a user's installation."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def imported() -> set[str]:
    names = set()
    for file in REPOSITORY.glob("src/evergraph/**/*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Import():
                    names |= {alias.name.partition(".")[0] for alias in node.names}
                case ast.ImportFrom(module=str(module), level=0):
                    names.add(module.partition(".")[0])
    return names - sys.stdlib_module_names - {"evergraph", "pyspark_evergraph"}


def declared() -> set[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    requirements = chain(project["dependencies"], *project["optional-dependencies"].values())
    return {re.split(r"[^\w.-]", requirement)[0].lower() for requirement in requirements}


def test_every_import_is_a_declared_dependency() -> None:
    distributions = packages_distributions()
    undeclared = {name for name in imported() if not {d.lower() for d in distributions.get(name, [name])} & declared()}
    assert undeclared == set()
