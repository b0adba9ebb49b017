import pytest

from evergraph.gate.tokens import Kind, tokenize


def words(text: str) -> list[str]:
    return [token.text for token in tokenize(text)]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (Kind.IRI, ["<>", "<http://example.org/a;b#c>", "<é>", r"<urn:\u00e9>"]),
        (Kind.STRING, ['""', '"}"', r'"\"{"', "'#;'", '"""a"b""c\n}"""', r"'''\''''", "''"]),
        (Kind.VARIABLE, ["?x", "$x1", "?é"]),
        (Kind.NAME, [":", ":a", "ex:", "ex:a.b", r"ex:a\;\{"[:-2], "ex:%20x", "ex:a:b", "_:b.c", "a-b:c", ":1"]),
        (Kind.WORD, ["INSERT", "a", "true", "GROUP_CONCAT"]),
        (Kind.NUMBER, ["1", "1.5", ".5", "1e5", "1.E5", "1.5e-5", "007"]),
        (Kind.TAG, ["@en", "@en-GB", "@ar--rtl"]),
        (Kind.MARK, ["{", "}", ";", ".", "^", "|", "<", "\u00a0"]),
    ],
)
def test_kinds(kind: Kind, texts: list[str]) -> None:
    for text in texts:
        assert [(token.kind, token.text) for token in tokenize(text)] == [(kind, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ # a comment with }\n}", ["{", "}"]),
        ("{#}\r}", ["{", "}"]),
        ("<a#b>", ["<a#b>"]),
        ("?a<?b", ["?a", "<", "?b"]),
        (":s :p 1.", [":s", ":p", "1", "."]),
        (":s :p :o.", [":s", ":p", ":o", "."]),
        (":a;:b", [":a", ";", ":b"]),
        ('"x"@en^^:d', ['"x"', "@en", "^", "^", ":d"]),
        ('""""""', ['""""""']),
        ("'a''b'", ["'a'", "'b'"]),
        ("{|:q 1|}", ["{", "|", ":q", "1", "|", "}"]),
        ('"never closed', ['"', "never", "closed"]),
    ],
)
def test_borders(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_places() -> None:
    text = "INSERT # x\n  DATA{é:a 'b'}"
    assert all(text[token.start : token.end] == token.text for token in tokenize(text))
    assert "".join(words(text)) == "INSERTDATA{é:a'b'}"


def test_words_in_any_case() -> None:
    [token] = tokenize("inSert")
    assert token.is_word("DELETE", "INSERT")
    assert not token.is_word("DELETE")
    assert not token.is_mark("inSert")
