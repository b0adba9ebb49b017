"""Reading rules from TOML: comparisons and groups, with mistakes told by line and with suggestions."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from evergraph.documents import Table
from evergraph.linking import transformations
from evergraph.linking.measures import MEASURES, Kind, Measure
from evergraph.linking.rules import Combine, Comparison, Group, Rule, Side
from evergraph.linking.transformations import PLAIN, WITH_ARGUMENT, Transformation
from evergraph.terms import NamedNode

PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        "dcterms": "http://purl.org/dc/terms/",
        "foaf": "http://xmlns.com/foaf/0.1/",
        "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
        "geosparql": "http://www.opengis.net/ont/geosparql#",
        "owl": "http://www.w3.org/2002/07/owl#",
        "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
        "schema": "http://schema.org/",
        "skos": "http://www.w3.org/2004/02/skos/core#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
    }
)
"""What needs no declaration."""

_PREFIXED = re.compile(r"([\w.-]*):(?!//)(.*)")
_SIMILARITIES = {"levenshtein": "levenshtein-similarity"}


class Names:
    """IRIs as people write them: in full, in angle brackets, or with a prefix."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self.prefixes = prefixes

    def iri(self, table: Table, key: str, text: str) -> NamedNode:
        """Read an IRI."""
        plain = text[1:-1] if text.startswith("<") and text.endswith(">") else text
        if plain is text and (found := _PREFIXED.fullmatch(text)):
            if found[1] in self.prefixes:
                plain = self.prefixes[found[1]] + found[2]
            elif found[1] not in ("urn", "http", "https", "tag", "mailto", "info"):
                table.unknown(found[1], self.prefixes, f"the prefix '{found[1]}' is not declared in [prefixes]", key)
        try:
            return NamedNode(plain)
        except ValueError as error:
            table.fail(f"expected an IRI, not '{text}': {error}", key, hint='for example "owl:sameAs"')

    def short(self, iri: NamedNode) -> str:
        """Write an IRI with a prefix, if there is one for it."""
        for prefix, start in self.prefixes.items():
            if iri.value.startswith(start):
                return f"{prefix}:{iri.value[len(start) :]}"
        return str(iri)


def read_rule(table: Table, names: Names, source: Sequence[NamedNode], target: Sequence[NamedNode]) -> Rule:
    """Read the rule in a table, for views with these properties."""
    return Rule(_Reader(names, source, target).group(table, Combine.AND))


class _Reader:
    def __init__(self, names: Names, source: Sequence[NamedNode], target: Sequence[NamedNode]) -> None:
        self._names = names
        self._properties = source, target

    def group(self, table: Table, default: Combine | None = None) -> Group:
        word = table.get("combine", str, default)
        known = [one.value for one in Combine]
        if word is None:
            table.fail("the key 'combine' is missing: how the parts make one score", hint=f"one of {', '.join(known)}")
        if word not in known:
            table.unknown(word, known, f"unknown combination '{word}'", "combine")
        combine = Combine(word)
        least = table.get("min", float)
        if combine not in (Combine.AVERAGE, Combine.SUM):
            if least is not None:
                table.fail(f"'{combine}' takes no threshold", "min", hint="average and sum do")
        elif least is None:
            table.fail(f"the key 'min' is missing: what the {combine} must reach", hint="for example min = 0.8")
        elif not 0 <= least <= 1:
            table.fail(f"expected a score between 0 and 1, not {least:g}", "min")
        weight, required = self._share(table)
        comparisons = [self.comparison(inner) for inner in table.tables("compare")]
        groups = [self.group(inner) for inner in table.tables("group")]
        if not comparisons and not groups:
            table.fail("nothing to compare", hint="add a [[….compare]] with source, measure and threshold")
        table.refuse_others()
        return Group(combine, (*comparisons, *groups), least or 0.0, weight, required)

    def comparison(self, table: Table) -> Comparison:
        source = self._numbers(table, "source", 0)
        target = self._numbers(table, "target", 1) or source
        if not source:
            table.fail("the key 'source' is missing: the property to compare", hint=self._known(0))
        measure = _measure(table)
        both = _transformations(table, "transform")
        weight, required = self._share(table)
        missing = table.get("missing", float)
        if missing is not None and not 0 <= missing <= 1:
            table.fail(f"expected a score between 0 and 1, not {missing:g}", "missing")
        threshold = _threshold(table, measure)
        names = [self._names.short(self._properties[0][number]) for number in source]
        comparison = Comparison(
            table.get("name", str) or f"{measure.name} of {', '.join(names)}",
            Side(source, both + _transformations(table, "source-transform")),
            Side(target, both + _transformations(table, "target-transform")),
            measure,
            threshold,
            weight,
            required,
            missing,
        )
        table.refuse_others()
        return comparison

    def _share(self, table: Table) -> tuple[float, bool]:
        weight, required = table.get("weight", float, 1.0), table.get("required", bool, False)
        assert weight is not None
        if weight <= 0:
            table.fail(f"expected a number above 0, not {weight:g}", "weight")
        return weight, bool(required)

    def _numbers(self, table: Table, key: str, side: int) -> tuple[int, ...]:
        properties = self._properties[side]
        numbers = []
        for text in table.texts(key):
            iri = self._names.iri(table, key, text)
            if iri not in properties:
                known = [self._names.short(one) for one in properties]
                table.unknown(text, known, f"the view of the {key} has no property {text}", key)
            numbers.append(properties.index(iri))
        return tuple(numbers)

    def _known(self, side: int) -> str:
        return "the view has " + ", ".join(self._names.short(one) for one in self._properties[side])


def _measure(table: Table) -> Measure:
    name = table.require("measure", str, "how to compare")
    if name not in MEASURES:
        table.unknown(name, MEASURES, f"unknown measure '{name}'", "measure")
    return MEASURES[name]


def _threshold(table: Table, measure: Measure) -> float:
    most, least = table.get("max", float), table.get("min", float)
    match measure.kind:
        case Kind.EQUALITY:
            for key, value in (("max", most), ("min", least)):
                if value is not None:
                    table.fail(f"'{measure.name}' takes no threshold: values are the same or not", key)
            return 0.0
        case Kind.DISTANCE:
            if least is not None:
                other = _SIMILARITIES.get(measure.name)
                table.fail(
                    f"'{measure.name}' is a distance: expected 'max', not 'min'",
                    "min",
                    hint=f"for a similarity between 0 and 1 use '{other}'" if other else "write max = the distance",
                )
            if most is None:
                table.fail(f"the key 'max' is missing: {measure.name} is {measure.definition}", hint="max = 1")
            if most < 0 or (measure.whole and most != int(most)):
                number = "a whole number" if measure.whole else "a number"
                table.fail(f"expected {number} from 0 on, not {most:g}", "max", hint="distances up to max match")
            return most
        case Kind.SIMILARITY:
            if most is not None:
                table.fail(f"'{measure.name}' is a similarity: expected 'min', not 'max'", "max", hint="min = 0.8")
            if least is None:
                table.fail(f"the key 'min' is missing: {measure.name} is {measure.definition}", hint="min = 0.8")
            if not 0 <= least <= 1:
                hint = f"{least:g} percent is min = {least / 100:g}" if 1 < least <= 100 else ""
                table.fail(f"expected a similarity between 0 and 1, not {least:g}", "min", hint=hint)
            return least


def _transformations(table: Table, key: str) -> tuple[Transformation, ...]:
    if isinstance(single := table.raw(key), str):
        return (_transformation(table, key, single),)
    return tuple(_transformation(table, key, one) for one in table.get(key, list) or [])


def _transformation(table: Table, key: str, written: Any) -> Transformation:
    if isinstance(written, str):
        if written in WITH_ARGUMENT and written not in PLAIN:
            table.fail(f"'{written}' needs an argument", key, hint=f'write {{ {written} = "…" }}')
        if written not in PLAIN:
            known = {*PLAIN, *WITH_ARGUMENT}
            table.unknown(written, known, f"unknown transformation '{written}'", key)
        return PLAIN[written]
    if not isinstance(written, dict) or not written:
        table.fail('expected names, or tables such as { replace = "…", with = "…" }', key)
    name, *more = written
    if name not in WITH_ARGUMENT:
        table.unknown(name, WITH_ARGUMENT, f"no transformation '{name}' takes an argument", key)
    if more and (name != "replace" or more != ["with"]):
        table.fail(f"'{name}' does not take '{more[0]}'", key)
    argument, replacement = written[name], written.get("with", "")
    if not isinstance(replacement, str):
        table.fail("'with' takes a text", key)
    try:
        return _made(name, tuple(argument) if isinstance(argument, list) else argument, replacement)
    except (re.error, TypeError) as error:
        shown = f"'{written[name]}'" + (f" with '{replacement}'" if replacement else "")
        table.fail(f"{shown} is not a regular expression: {error}", key)
    except ValueError as error:
        table.fail(f"'{name}': {error}", key)


@lru_cache(maxsize=1_000)
def _made(name: str, argument: Any, replacement: str) -> Transformation:
    """Make a transformation; the same one for the same words, so that rules can tell that it is the same."""
    given = list(argument) if isinstance(argument, tuple) else argument
    return transformations.replace(given, replacement) if name == "replace" else WITH_ARGUMENT[name](given)
