"""Sources of changes: changeset folders, RDF Patch, folders of versions. A source requests; only the gate decides."""

import os
from itertools import zip_longest
from pathlib import Path

from evergraph.errors import DataError, EmptySource
from evergraph.files import STANDARD_STREAM, AnyPath
from evergraph.ports import Source
from evergraph.sources.changesets import ChangesetSource, write_changeset
from evergraph.sources.folders import listed, visible_files
from evergraph.sources.patches import PatchSource, is_patch
from evergraph.sources.versions import VersionSource
from evergraph.sources.wikidata import WikidataSource, is_events

_WHAT_IT_CAN_BE = (
    "a change source is a changeset folder (NNNNNN.added.nt, NNNNNN.removed.nt), an RDF Patch file (.rdfp, .patch) "
    "or folder of them, or a folder of versions (*.nt, *.nq); each file may end in .gz"
)


def open_source(path: AnyPath, *, clears: bool = False) -> Source:
    """Find out which kind of change source a path is; ``-`` is RDF Patch on standard input.

    :param clears: the reader can clear subjects, so that changesets may ask for that.
    """
    if os.fspath(path) == STANDARD_STREAM:
        return PatchSource((STANDARD_STREAM,))
    root = Path(path)
    if root.is_dir():
        return _open_folder(root, clears)
    if not root.exists():
        raise DataError(f"{root}: no such file or folder", hint=_WHAT_IT_CAN_BE)
    if is_patch(root):
        return PatchSource((root,))
    if is_events(root) and clears:
        return WikidataSource(root)
    raise DataError(f"{root} is not a change source", hint=_WHAT_IT_CAN_BE)


def refuse_changed(source: Source, root: AnyPath, sequence: int, place: str) -> None:
    """See that a change which was taken in is where it was: what came late, before it, would be lost otherwise."""
    now = source.place(sequence)
    if now is None:
        raise DataError(
            f"{root} has fewer changes than have been taken in ({sequence})",
            hint="keep the files of changes, or begin anew",
        )
    if not _is_same(now, place, root):
        raise DataError(
            f"change {sequence} of {root} is {now} now, and was {place} when it was taken in",
            hint="files came late, or are gone: let them arrive in the order of their names, and keep them",
        )


def _is_same(now: str, before: str, root: AnyPath) -> bool:
    """Compare two names of a change; the source may have been named in another way before."""
    folder = Path(root) if Path(root).is_dir() else Path(root).parent
    start = f"{folder}{os.sep}"
    pairs = zip_longest(now.split(", "), before.split(", "), fillvalue="")
    return all(f"{os.sep}{one}".endswith(f"{os.sep}{other.removeprefix(start)}") for other, one in pairs)


def _open_folder(root: Path, clears: bool) -> Source:
    changesets = ChangesetSource.find(root, clears=clears)
    # Changesets are .nt files too, and their source has refused all other data files.
    versions = None if changesets else VersionSource.find(root)
    candidates = {"changesets": changesets, "patches": PatchSource.find(root), "versions": versions}
    found = {kind: source for kind, source in candidates.items() if source}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        kinds = " and ".join(found)
        raise DataError(
            f"{root} holds {kinds}; it can only be one change source", hint="put them into folders of their own"
        )
    files = list(visible_files(root, recursive=True))
    if not files:
        raise EmptySource(f"{root} is not a change source: it is empty", hint=_WHAT_IT_CAN_BE)
    raise DataError(f"{root} is not a change source: it holds {listed(files)}", hint=_WHAT_IT_CAN_BE)


__all__ = ["ChangesetSource", "PatchSource", "VersionSource", "open_source", "refuse_changed", "write_changeset"]
