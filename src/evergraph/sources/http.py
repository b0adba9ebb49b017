"""Changesets over HTTP, in the layout of DBpedia Live: folders that the server lists, and files in them.

What is there is what the listings say, up to the change that ``lastPublishedFile.txt`` names, if there is such a file;
it may be ahead of the files. A change is known by its place, such as ``2015/06/01/12/000007``, and reading goes on from
any place without looking at what was before it. Whatever the network does is never taken for "there is no more": a
request that fails is repeated, and in the end it is an error.
"""

import gzip
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from types import TracebackType
from typing import Self, TypeAlias
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from evergraph.delta import Request
from evergraph.errors import DataError, SourceUnavailable
from evergraph.ports import Subject
from evergraph.rdfio import format_for_path, parse_quads
from evergraph.sources.changesets import KINDS, LAST_PUBLISHED, kind_of, parse_published, with_predicates
from evergraph.terms import NamedNode, Quad

_LINK = re.compile(r"""href\s*=\s*["']([^"'?#]+)["']""", re.IGNORECASE)
_NOT_THERE = frozenset({404, 410})
_PASSING = frozenset({408, 425, 429})

Place: TypeAlias = tuple[tuple[str, ...], int]
"""The folders of a change, and its number."""


@dataclass(frozen=True, slots=True)
class RemoteChangeset:
    """A change that has been seen and not been read yet."""

    source: "HttpChangesets"
    place: Place
    files: Mapping[str, str]

    @property
    def name(self) -> str:
        """The place as a text."""
        folders, number = self.place
        return "/".join([*folders, f"{number:06}"])

    @property
    def clears(self) -> bool:
        """Whether subjects are cleared."""
        return "clear" in self.files

    def read(self, predicates: frozenset[NamedNode] | None = None) -> tuple[Request, frozenset[Subject]]:
        """Fetch the files: what is requested, all or what has some predicates, and which subjects are cleared first."""
        quads = {kind: self.quads(kind, None if kind == "clear" else predicates) for kind in KINDS}
        request = Request(removed=quads["removed"], added=quads["added"] | quads["reinserted"])
        return request, frozenset(quad.subject for quad in quads["clear"])

    def check(self) -> None:
        """Fetch everything, and keep nothing: what is wrong is raised."""
        self.read(frozenset())

    def quads(self, kind: str, predicates: frozenset[NamedNode] | None = None) -> frozenset[Quad]:
        """Fetch the file of one kind, if there is one."""
        url = self.files.get(kind)
        if url is None:
            return frozenset()
        content = self.source.fetch(url)
        if content is None:
            raise SourceUnavailable(f"{url} is listed and not there", hint="try again: it may be on its way")
        if url.endswith(".gz"):
            content = _decompressed(content, url)
        parsed = parse_quads(content, format_for_path(urlsplit(url).path), where=url, rename_blank_nodes=False)
        return with_predicates(parsed, predicates)


class HttpChangesets:
    """A tree of changesets on a server.

    :param retries: how often a request is repeated that fails, after ``pause`` seconds and twice as long each time.
    """

    def __init__(self, url: str, *, retries: int = 5, pause: float = 0.5, timeout: float = 30.0) -> None:
        self.url = url.rstrip("/") + "/"
        self._retries = retries
        self._pause = pause
        self._http = httpx.Client(timeout=timeout, follow_redirects=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def pending(self, after: str = "") -> Iterator[RemoteChangeset]:
        """Iterate over the changes after a place, in order, as far as they are published now."""
        *folders, number = after.split("/")
        begin = (tuple(folders), int(number)) if after else ((), -1)
        text = self.fetch(self.url + LAST_PUBLISHED)
        last = None
        if text is not None and text.strip():
            last = parse_published(text.decode("utf-8", "replace"), self.url + LAST_PUBLISHED)
        yield from self._walk((), begin, last)

    def _walk(self, folders: tuple[str, ...], begin: Place, last: Place | None) -> Iterator[RemoteChangeset]:
        inner, files = self._listing(folders)
        for number in sorted(files):
            place = (folders, number)
            if place > begin and (last is None or place <= last):
                yield RemoteChangeset(self, place, files[number])
        for name in sorted(inner):
            below = (*folders, name)
            depth = len(below)
            if below >= begin[0][:depth] and (last is None or below <= last[0][:depth] or len(last[0]) < depth):
                yield from self._walk(below, begin, last)

    def _listing(self, folders: tuple[str, ...]) -> tuple[set[str], dict[int, dict[str, str]]]:
        """Read what a folder has: names of folders, and files by number and kind."""
        url = self.url + "".join(f"{folder}/" for folder in folders)
        page = self.fetch(url)
        if page is None:
            raise SourceUnavailable(f"{url} is not there", hint="check the address; the server must list its folders")
        inner: set[str] = set()
        files: dict[int, dict[str, str]] = {}
        for link in _LINK.findall(page.decode("utf-8", "replace")):
            target = urljoin(url, unescape(link))
            name = unquote(target.removeprefix(url))
            if not target.startswith(url) or not name or name.startswith("."):
                continue
            if name.endswith("/") and "/" not in name[:-1]:
                inner.add(name[:-1])
            elif (found := kind_of(name)) is not None:
                kinds = files.setdefault(found[0], {})
                if kinds.setdefault(found[1], target) != target:
                    raise DataError(f"{url} has two files of one kind: {kinds[found[1]]}, {target}")
        return inner, files

    def fetch(self, url: str) -> bytes | None:
        """Get a file; None if the server says that there is none. Raises `SourceUnavailable`."""
        reason = ""
        for attempt in range(self._retries + 1):
            if attempt:
                time.sleep(self._pause * 2 ** (attempt - 1))
            try:
                response = self._http.get(url)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                reason = str(error) or type(error).__name__
                continue
            if response.is_success:
                return response.content
            reason = f"{response.status_code} {response.reason_phrase}"
            if response.status_code in _NOT_THERE:
                return None
            if response.status_code < 500 and response.status_code not in _PASSING:
                break
        raise SourceUnavailable(
            f"{url} cannot be fetched: {reason}", hint="nothing is lost: run again when the server answers"
        )


def _decompressed(content: bytes, url: str) -> bytes:
    try:
        if not content:
            raise EOFError("the file is empty")
        return gzip.decompress(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{url}: damaged gzip file: {error}", hint="it has to be published again") from error
