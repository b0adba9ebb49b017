"""Splink on the same persons: what it takes for a full run, and how many pairs it finds.

Splink finds pairs by equality joins, or by any condition in SQL, which is then asked of all pairs. It estimates how
likely pairs are the same; here only the pairs count whose names are within one edit. What changes, it cannot follow.
"""

import time
from collections.abc import Mapping
from importlib.util import find_spec

import pyarrow as pa

CONDITIONS: Mapping[str, str] = {
    "name": "levenshtein(l.name, r.name) <= 1",
    "name and date": "l.born = r.born and levenshtein(l.name, r.name) <= 1",
}
"""The rules of the benchmark as conditions of Splink's blocking; DuckDB makes an equality join where there is one."""


def is_installed() -> bool:
    """Tell whether Splink and the database that it uses can be imported."""
    return all(find_spec(name) is not None for name in ("splink", "duckdb"))


def splink(label: str, sides: tuple[dict[str, tuple[str, str]], ...]) -> tuple[float, int]:
    """Link both sides by a rule, on one thread; return the seconds of the processor and the number of pairs."""
    import duckdb
    from splink import DuckDBAPI, Linker, SettingsCreator
    from splink import comparison_library as comparisons
    from splink.blocking_rule_library import CustomRule

    tables = [
        pa.table({"unique_id": list(side), "name": [one[0] for one in values], "born": [one[1] for one in values]})
        for side in sides
        for values in [list(side.values())]
    ]
    database = DuckDBAPI(duckdb.connect(config={"threads": 1}))
    begin = time.process_time()
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[comparisons.LevenshteinAtThresholds("name", [1])],
        blocking_rules_to_generate_predictions=[CustomRule(CONDITIONS[label])],
    )
    linker = Linker([database.register(table) for table in tables], settings, log_level="ERROR")
    found = linker.inference.predict().as_duckdbpyrelation().filter("gamma_name > 0").aggregate("count(*)")
    count = int(found.fetchall()[0][0])
    return time.process_time() - begin, count
