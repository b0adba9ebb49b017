"""The characters of names in SPARQL (https://www.w3.org/TR/sparql11-query/#rPN_CHARS), for regular expressions."""

NAME_START = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
"""PN_CHARS_BASE."""

NAME_REST = NAME_START + "_0-9\u00b7\u0300-\u036f\u203f-\u2040"
"""PN_CHARS without the hyphen, which is what the names of variables go on with."""
