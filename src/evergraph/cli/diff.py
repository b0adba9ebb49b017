"""``evergraph diff``: the change between two versions of a dataset."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from evergraph.bulk import diff as write_diff
from evergraph.cli.progress import progress
from evergraph.engines.spark.dumps import find_files


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The old version: an RDF file, or a folder of them.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The new version.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder for the changeset; made if missing. A changeset there is not replaced."
        ),
    ],
    spark_master: Annotated[
        str | None, typer.Option(metavar="URL", help="Master of a Spark cluster; default: this machine.")
    ] = None,
) -> None:
    """Write the change between two versions of a dataset of any size, on Spark.

    Prints `{"added":n,"removed":n}` and writes `DIR/000001.added.nt.gz` and `DIR/000001.removed.nt.gz`, N-Quads
    (`.nq.gz`) where there are named graphs. Blank nodes are compared by their labels: a node with another label in the
    new version counts as another node. On a cluster, all machines must see the files under the same paths.

    **Examples**

    `evergraph diff 2024-01.nt.gz 2024-02.nt.gz --out changes`

    `evergraph diff dump-1/ dump-2/ --out changes --spark-master spark://master:7077`
    """
    files = len(find_files([old])) + len(find_files([new]))
    with progress(f"comparing {files} files"):
        found = write_diff(old, new, out, spark_master=spark_master)
    sys.stdout.write(json.dumps({"added": found.added, "removed": found.removed}) + "\n")
