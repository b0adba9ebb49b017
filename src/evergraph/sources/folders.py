"""What the sources that read folders share."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from evergraph.errors import DataError


def visible_files(folder: Path, *, recursive: bool = False) -> Iterator[Path]:
    """Iterate over the files of a folder, in no order, without hidden ones: those are not meant for readers."""
    for path in folder.rglob("*") if recursive else folder.iterdir():
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.is_file():
            yield path


def make_folder(folder: Path) -> None:
    """Create a folder, and those above it, where they are missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot create the folder {folder}: {error.strerror}", hint="choose another place") from error


def listed(paths: Sequence[Path], most: int = 3) -> str:
    """Name some of the files, and say how many more there are."""
    names = [str(path) for path in sorted(paths)]
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
