from pathlib import Path

import pytest

from evergraph.errors import DataError
from evergraph.sources import ChangesetSource, PatchSource, VersionSource, open_source


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("000001.added.nt", ChangesetSource),
        ("2024/01/01/00/000001.removed.nq.gz", ChangesetSource),
        ("a.rdfp", PatchSource),
        ("a.patch.gz", PatchSource),
        ("a.nt", VersionSource),
        ("a.nq.gz", VersionSource),
    ],
)
def test_the_kind_is_found_out(tmp_path: Path, name: str, kind: type) -> None:
    touch(tmp_path, name)
    assert isinstance(open_source(tmp_path), kind)
    assert isinstance(open_source(str(tmp_path)), kind)


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (["000001.added.nt", "a.rdfp"], "changesets and patches"),
        (["a.nt", "a.rdfp"], "patches and versions"),
    ],
)
def test_mixed_folders_are_refused(tmp_path: Path, names: list[str], kinds: str) -> None:
    touch(tmp_path, *names)
    with pytest.raises(DataError, match=f"holds {kinds}"):
        open_source(tmp_path)


def test_what_is_no_source_is_refused_with_what_was_found(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is empty"):
        open_source(tmp_path)
    touch(tmp_path, "a.txt", "b/c.ttl", "d", "e", "f")
    with pytest.raises(DataError, match=r"a\.txt, .*c\.ttl, .*d and 2 more") as caught:
        open_source(tmp_path)
    assert "NNNNNN.added.nt" in caught.value.hint


@pytest.mark.parametrize("name", ["missing", "missing.rdfp"])
def test_missing_paths(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        open_source(tmp_path / name)


def test_a_file_that_is_no_patch(tmp_path: Path) -> None:
    touch(tmp_path, "a.nt")
    with pytest.raises(DataError, match=r"a\.nt is not a change source"):
        open_source(tmp_path / "a.nt")
