"""An MkDocs hook for fences such as ``sparql title="rename.ru"``: MkDocs itself takes only the language.

The title is set above the block; other words, such as ``no-run``, are for the tests of the examples.
"""

import re

_FENCE = re.compile(r'^(?P<indent> *)(?P<open>`{3,}\w+) +(?=\S)(?:.*\btitle="(?P<title>[^"]+)")?.*$', re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Rewrite the fences of a page before it is rendered."""
    return _FENCE.sub(_rewrite, markdown)


def _rewrite(fence: re.Match[str]) -> str:
    indent, opening, title = fence["indent"], fence["open"], fence["title"]
    return f"{indent}`{title}`:\n\n{indent}{opening}" if title else f"{indent}{opening}"
