"""Resolution of relative IRI references (https://www.rfc-editor.org/rfc/rfc3986#section-5.2)."""

import re

_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def resolve(base: str, reference: str) -> str:
    """Resolve a reference against a base. Without a base, or with a scheme of its own, it stays as it is."""
    scheme, authority, path, query, fragment = _split(reference)
    if not base or scheme is not None:
        return reference
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is None:
        if path == "":
            path, query = base_path, base_query if query is None else query
        else:
            if not path.startswith("/"):
                path = _merge(base_authority, base_path, path)
            path = _without_dots(path)
        authority = base_authority
    else:
        path = _without_dots(path)
    return (
        f"{base_scheme}:"
        + ("" if authority is None else f"//{authority}")
        + path
        + ("" if query is None else f"?{query}")
        + ("" if fragment is None else f"#{fragment}")
    )


def _split(reference: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    found = _PARTS.fullmatch(reference)
    assert found is not None  # every part is optional
    scheme, authority, path, query, fragment = found.groups()
    return scheme, authority, path, query, fragment


def _merge(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(kept) > 1:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)
