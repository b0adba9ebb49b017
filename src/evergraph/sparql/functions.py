"""The built-in functions of SPARQL 1.1 that follow from their arguments (https://www.w3.org/TR/sparql11-query/#SparqlOps).

A function takes terms that are bound and returns a term, or None for an error.
"""

import hashlib
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias
from urllib.parse import quote

from evergraph.sparql import numbers
from evergraph.sparql.algebra import Function
from evergraph.sparql.iris import resolve
from evergraph.sparql.numbers import Numeric, NumericType
from evergraph.sparql.temporal import Duration, DurationKind, Moment, MomentKind
from evergraph.sparql.values import LangString, boolean, integer, value_of
from evergraph.sparql.xpath_regex import RegexError, compile_regex, replacement
from evergraph.terms import XSD, BlankNode, Literal, NamedNode, Term

TermFunction: TypeAlias = Callable[..., Term | None]


def text_of(term: Term) -> tuple[str, str | None] | None:
    """Return text and language of a string literal; None for any other term."""
    if not isinstance(term, Literal):
        return None
    match value_of(term):
        case str(text):
            return text, None
        case LangString(text, language):
            return text, language
        case _:
            return None


def simple_text(term: Term) -> str | None:
    """Return the text of a string without language; None for any other term."""
    found = text_of(term)
    return found[0] if found and found[1] is None else None


def number_of(term: Term) -> Numeric | None:
    """Return the value of a numeric literal; None for any other term."""
    value = value_of(term) if isinstance(term, Literal) else None
    return value if isinstance(value, Numeric) else None


def with_language(text: str, language: str | None) -> Literal:
    """Make a string literal."""
    return Literal(text) if language is None else Literal(text, language=language)


def _compatible(left: Term, right: Term) -> tuple[str, str, str | None] | None:
    """Check argument compatibility (https://www.w3.org/TR/sparql11-query/#func-arg-compatibility): texts, language."""
    a, b = text_of(left), text_of(right)
    if a is None or b is None or (b[1] is not None and a[1] != b[1]):
        return None
    return a[0], b[0], a[1]


def _str(term: Term) -> Term | None:
    return Literal(term.value) if isinstance(term, NamedNode | Literal) else None


def _lang(term: Term) -> Term | None:
    return Literal(term.language or "") if isinstance(term, Literal) else None


def _lang_matches(tag: Term, wanted: Term) -> Term | None:
    language, pattern = simple_text(tag), simple_text(wanted)
    if language is None or pattern is None:
        return None
    if pattern == "*":
        return boolean(language != "")
    language, pattern = language.lower(), pattern.lower()
    return boolean(language == pattern or language.startswith(pattern + "-"))


def _datatype(term: Term) -> Term | None:
    return term.datatype if isinstance(term, Literal) else None


def _iri(term: Term, base: Term) -> Term | None:
    text, base_text = simple_text(term), simple_text(base)
    if isinstance(term, NamedNode) or text is None or base_text is None:
        return term if isinstance(term, NamedNode) else None
    try:
        return NamedNode(resolve(base_text, text))
    except ValueError:
        return None


def _numeric(function: Callable[[Numeric], Numeric]) -> TermFunction:
    def apply(term: Term) -> Term | None:
        number = number_of(term)
        return None if number is None else numbers.to_literal(function(number))

    return apply


def _concat(*terms: Term) -> Term | None:
    texts = [text_of(term) for term in terms]
    if None in texts:
        return None
    found = [text for text in texts if text is not None]
    languages = {language for _, language in found}
    return with_language("".join(text for text, _ in found), languages.pop() if len(languages) == 1 else None)


def _strlen(term: Term) -> Term | None:
    found = text_of(term)
    return None if found is None else integer(len(found[0]))


def _mapped(function: Callable[[str], str]) -> TermFunction:
    def apply(term: Term) -> Term | None:
        found = text_of(term)
        return None if found is None else with_language(function(found[0]), found[1])

    return apply


def _encode_for_uri(term: Term) -> Term | None:
    found = text_of(term)
    return None if found is None else Literal(quote(found[0], safe="-_.~"))


def _tested(function: Callable[[str, str], bool]) -> TermFunction:
    def apply(left: Term, right: Term) -> Term | None:
        found = _compatible(left, right)
        return None if found is None else boolean(function(found[0], found[1]))

    return apply


def _strbefore(left: Term, right: Term) -> Term | None:
    found = _compatible(left, right)
    if found is None:
        return None
    text, wanted, language = found
    at = text.find(wanted)
    return Literal("") if at < 0 else with_language(text[:at], language)


def _strafter(left: Term, right: Term) -> Term | None:
    found = _compatible(left, right)
    if found is None:
        return None
    text, wanted, language = found
    at = text.find(wanted)
    return Literal("") if at < 0 else with_language(text[at + len(wanted) :], language)


def _substr(term: Term, start: Term, length: Term | None = None) -> Term | None:
    """fn:substring: positions count from 1 and are rounded."""
    found, first = text_of(term), _position(start)
    last = float("inf") if length is None else _position(length)
    if found is None or first is None or last is None:
        return None
    text, language = found
    begin, end = max(first, 1), first + last
    if not begin < end:  # also where one of them is not a number
        return with_language("", language)
    stop = None if end > len(text) else int(end) - 1
    return with_language("" if begin > len(text) else text[int(begin) - 1 : stop], language)


_FAR = 2**53
"""A position beyond the end of every string."""


def _position(term: Term) -> float | int | None:
    number = number_of(term)
    if number is None:
        return None
    value = numbers.round_half_up(number).value
    return value if isinstance(value, float) else max(-_FAR, min(int(value), _FAR))


def _regex(term: Term, pattern: Term, flags: Term | None = None) -> Term | None:
    found, source, options = text_of(term), simple_text(pattern), "" if flags is None else simple_text(flags)
    if found is None or source is None or options is None:
        return None
    try:
        return boolean(compile_regex(source, options).search(found[0]) is not None)
    except RegexError:
        return None


def _replace(term: Term, pattern: Term, new: Term, flags: Term | None = None) -> Term | None:
    found, source, target = text_of(term), simple_text(pattern), simple_text(new)
    options = "" if flags is None else simple_text(flags)
    if found is None or source is None or target is None or options is None:
        return None
    try:
        compiled = compile_regex(source, options)
        if compiled.search("") is not None:
            return None  # err:FORX0003, a pattern that matches the empty text
        result = compiled.sub(replacement(target, compiled.groups, literal="q" in options), found[0])
    except RegexError:
        return None
    return with_language(result, found[1])


def _part(function: Callable[[Moment], Term | None], *kinds: MomentKind) -> TermFunction:
    def apply(term: Term) -> Term | None:
        value = value_of(term) if isinstance(term, Literal) else None
        return function(value) if isinstance(value, Moment) and value.kind in kinds else None

    return apply


def _seconds(moment: Moment) -> Term:
    return numbers.to_literal(Numeric(NumericType.DECIMAL, moment.second))


def _timezone(moment: Moment) -> Term | None:
    if moment.zone is None:
        return None
    return Literal(str(Duration(0, Decimal(moment.zone * 60))), datatype=NamedNode(XSD + DurationKind.DAY_TIME.value))


def _hash(algorithm: str) -> TermFunction:
    def apply(term: Term) -> Term | None:
        text = simple_text(term)
        return None if text is None else Literal(hashlib.new(algorithm, text.encode()).hexdigest())

    return apply


def _strlang(term: Term, tag: Term) -> Term | None:
    text, language = simple_text(term), simple_text(tag)
    if text is None or not language:
        return None
    try:
        return Literal(text, language=language)
    except ValueError:
        return None


def _strdt(term: Term, datatype: Term) -> Term | None:
    text = simple_text(term)
    return Literal(text, datatype=datatype) if text is not None and isinstance(datatype, NamedNode) else None


def _is_numeric(term: Term) -> Term:
    return boolean(number_of(term) is not None)


_DAYS = (MomentKind.DATE_TIME, MomentKind.DATE)
_CLOCKS = (MomentKind.DATE_TIME, MomentKind.TIME)

PURE_FUNCTIONS: dict[Function, TermFunction] = {
    Function.STR: _str,
    Function.LANG: _lang,
    Function.LANGMATCHES: _lang_matches,
    Function.DATATYPE: _datatype,
    Function.IRI: _iri,
    Function.ABS: _numeric(numbers.absolute),
    Function.CEIL: _numeric(numbers.ceiling),
    Function.FLOOR: _numeric(numbers.floor),
    Function.ROUND: _numeric(numbers.round_half_up),
    Function.CONCAT: _concat,
    Function.STRLEN: _strlen,
    Function.UCASE: _mapped(str.upper),
    Function.LCASE: _mapped(str.lower),
    Function.ENCODE_FOR_URI: _encode_for_uri,
    Function.CONTAINS: _tested(lambda text, part: part in text),
    Function.STRSTARTS: _tested(str.startswith),
    Function.STRENDS: _tested(str.endswith),
    Function.STRBEFORE: _strbefore,
    Function.STRAFTER: _strafter,
    Function.YEAR: _part(lambda moment: integer(moment.year), *_DAYS),
    Function.MONTH: _part(lambda moment: integer(moment.month), *_DAYS),
    Function.DAY: _part(lambda moment: integer(moment.day), *_DAYS),
    Function.HOURS: _part(lambda moment: integer(moment.hour), *_CLOCKS),
    Function.MINUTES: _part(lambda moment: integer(moment.minute), *_CLOCKS),
    Function.SECONDS: _part(_seconds, *_CLOCKS),
    Function.TIMEZONE: _part(_timezone, *MomentKind),
    Function.TZ: _part(lambda moment: Literal(moment.zone_text()), *MomentKind),
    Function.MD5: _hash("md5"),
    Function.SHA1: _hash("sha1"),
    Function.SHA256: _hash("sha256"),
    Function.SHA384: _hash("sha384"),
    Function.SHA512: _hash("sha512"),
    Function.STRLANG: _strlang,
    Function.STRDT: _strdt,
    Function.SAMETERM: lambda left, right: boolean(left == right),
    Function.ISIRI: lambda term: boolean(isinstance(term, NamedNode)),
    Function.ISBLANK: lambda term: boolean(isinstance(term, BlankNode)),
    Function.ISLITERAL: lambda term: boolean(isinstance(term, Literal)),
    Function.ISNUMERIC: _is_numeric,
    Function.REGEX: _regex,
    Function.SUBSTR: _substr,
    Function.REPLACE: _replace,
}
"""All but the volatile functions. The second argument of IRI is the base."""
