"""Sources of changes as feeds: read from any place on, in batches, while the source still grows.

A feed has *offsets*, small JSON objects. An offset says how many changes were read (``sequence``), up to which file
(``place``), and how many files there were up to it (``present``): a file that comes late, before that place, is an
error and never a change that is lost.
"""

from pathlib import Path

from evergraph.errors import DataError
from evergraph.files import STANDARD_STREAM, AnyPath, is_address
from evergraph.sources import ChangesetSource, PatchSource, VersionSource, open_source
from evergraph.sources.feeds.events import EventFeed
from evergraph.sources.feeds.files import ChangesetFeed, VersionFeed
from evergraph.sources.feeds.http import HttpFeed
from evergraph.sources.feeds.model import ALL, Feed, Limit, Offset, Piece, Settings, set_aside
from evergraph.sources.feeds.patches import PatchFeed
from evergraph.sources.wikidata import WikidataSource


def open_feed(path: AnyPath, settings: Settings | None = None) -> Feed:
    """Find out which kind of change source a path is, and read it as a feed."""
    if str(path) == STANDARD_STREAM:
        raise DataError("standard input cannot be read twice", hint="put the changes into a file or a folder")
    settings = settings or Settings()
    if is_address(path):
        return HttpFeed(str(path), settings)
    root = Path(path)
    match open_source(root, clears=True):
        case ChangesetSource():
            return ChangesetFeed(root, settings)
        case VersionSource():
            return VersionFeed(root, settings)
        case PatchSource():
            return PatchFeed(root, settings)
        case WikidataSource():
            return EventFeed(root, settings)
        case other:
            raise AssertionError(other)


__all__ = ["ALL", "Feed", "Limit", "Offset", "Piece", "Settings", "open_feed", "set_aside"]
