"""Texts that commands read: files, or standard input as ``-``."""

import sys
from pathlib import Path

from evergraph.errors import DataError


def read_text(name: str) -> str:
    """Read a SPARQL text."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        hint = "to give the text itself, pipe it to -" if "{" in name else "check the path"
        raise DataError(f"{display_name(name)}: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        place = f"{display_name(name)}: byte {error.start} is not UTF-8"
        raise DataError(place, hint="SPARQL is written in UTF-8, and not compressed") from error


def base_iri(name: str) -> str:
    """Return what relative IRIs in a text are relative to: the file, or the working folder for standard input."""
    return Path.cwd().as_uri() + "/" if name == "-" else Path(name).resolve().as_uri()


def display_name(name: str) -> str:
    """Return the name of a text for messages."""
    return "standard input" if name == "-" else name
