"""Nomisma mints and Pleiades places: their catalogue views, and the rule that links them."""

from pathlib import Path

DEFINITION = r"""
[linkset]
predicate = "skos:closeMatch"
one-to-one = true

[prefixes]
nmo = "http://nomisma.org/ontology#"
place = "https://pleiades.stoa.org/places/vocab#"
ex = "http://example.org/"

[source]
changes = "NOMISMA"
text = '''
PREFIX nmo: <http://nomisma.org/ontology#>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX ex: <http://example.org/>
CONSTRUCT { ?x a nmo:Mint ; ex:name ?name ; ex:point ?point ; ex:kind ?kind }
WHERE {
  ?x a nmo:Mint
  { ?x skos:prefLabel|skos:altLabel ?name }
  UNION { ?x geo:location ?l . ?l geo:lat ?lat ; geo:long ?long BIND(CONCAT(STR(?lat), " ", STR(?long)) AS ?point) }
  UNION { BIND("settlement" AS ?kind) }
}
'''

[target]
changes = "PLEIADES"
text = '''
PREFIX place: <https://pleiades.stoa.org/places/vocab#>
PREFIX type: <https://pleiades.stoa.org/vocabularies/place-types/>
PREFIX dcterms: <http://purl.org/dc/terms/>
PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX ex: <http://example.org/>
CONSTRUCT { ?x a place:Place ; ex:name ?name ; ex:point ?point ; ex:kind ?kind }
WHERE {
  ?x a place:Place
  { ?x dcterms:title|(place:hasName/(place:nameRomanized|place:nameAttested)) ?name }
  UNION { ?x geo:lat ?lat ; geo:long ?long BIND(CONCAT(STR(?lat), " ", STR(?long)) AS ?point) }
  UNION {
    VALUES ?type {
      type:settlement type:settlement-modern type:urban type:unlocated type:unknown type:port type:fort type:fort-2
      type:station type:villa type:town type:city
    }
    ?x place:hasFeatureType ?type BIND("settlement" AS ?kind)
  }
}
'''

[match]
combine = "and"

[[match.compare]]
source = "ex:kind"
measure = "exact"

[[match.group]]
combine = "or"

[[match.group.group]] # similar names, close by
combine = "and"
[[match.group.group.compare]]
source = "ex:name"
measure = "jaro-winkler"
min = 0.9
transform = SPELLING
[[match.group.group.compare]]
source = "ex:point"
measure = "geo"
max = 15

[[match.group.group]] # the same spot: one has taken the coordinates of the other
combine = "and"
[[match.group.group.compare]]
source = "ex:point"
measure = "geo"
max = 0.05

[[match.group.group]] # the same name, where one has no coordinates
combine = "and"
[[match.group.group.compare]]
source = "ex:name"
measure = "exact"
transform = SPELLING
[[match.group.group.compare]]
source = "ex:point"
measure = "geo"
max = 15
missing = 0.5
"""

SPELLING = r"""[
  { split = '[/,;()]| or ' }, "fold", "accents", "punctuation",
  { replace = 'ae', with = 'ai' }, { replace = 'oe', with = 'oi' }, { replace = 'ou', with = 'u' },
  { replace = 'ei', with = 'i' }, { replace = 'y', with = 'i' }, { replace = 'c', with = 'k' },
  { replace = 'kh', with = 'k' }, { replace = 'ph', with = 'f' }, { replace = 'th', with = 't' },
  { replace = 'rh', with = 'r' }, { replace = 'us\b', with = 'os' }, { replace = 'um\b', with = 'on' },
  { replace = '(.)\1', with = '\1' },
]"""
"""Greek and Latin spelling of the same name: Ephesus and Ephesos, Cyme and Kyme."""

BASELINE = """
[match]
combine = "and"
[[match.compare]]
source = "ex:name"
measure = "exact"
transform = [{ split = '[/,;()]| or ' }, "fold", "accents", "punctuation"]
[[match.compare]]
source = "ex:point"
measure = "geo"
max = 5
"""


def definition(nomisma: Path, pleiades: Path, *, baseline: bool = False) -> str:
    """Return the definition of the linkset, by the better rule or by "same name within 5 km"."""
    head, rule = DEFINITION.split("[match]")
    text = head + (BASELINE if baseline else "[match]" + rule.replace("SPELLING", SPELLING))
    return text.replace("NOMISMA", str(nomisma)).replace("PLEIADES", str(pleiades))
