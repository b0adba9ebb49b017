"""robots.txt as RFC 9309 has it: groups by product token, the longest matching rule, ``*``, ``$``; and Crawl-delay."""

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

TOKEN = "evergraph"
"""The product token by which rules can name Evergraph."""

LARGEST = 512 * 1024
"""Bytes of a robots.txt that are read."""
LONGEST_DELAY = 60.0


@dataclass(frozen=True, slots=True)
class Rule:
    """A path pattern that is allowed or not."""

    allow: bool
    pattern: str

    def matches(self, path: str) -> bool:
        """Tell whether the pattern matches a path, from its beginning."""
        anchored = self.pattern.endswith("$")
        first, *others = self.pattern.removesuffix("$").split("*")
        if not path.startswith(first):
            return False
        place = len(first)
        for part in others[:-1] if anchored else others:  # the leftmost match of each leaves most room for the next
            place = path.find(part, place)
            if place < 0:
                return False
            place += len(part)
        if not anchored:
            return True
        return path.endswith(others[-1]) and len(path) - len(others[-1]) >= place if others else place == len(path)


@dataclass(frozen=True, slots=True)
class Robots:
    """What a host asks of us."""

    rules: tuple[Rule, ...] = ()
    delay: float = 0.0

    def allows(self, url: str) -> bool:
        """Tell whether an address may be asked: the longest rule counts, allow before disallow."""
        parts = urlsplit(url)
        path = _normal((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        if path == "/robots.txt":
            return True
        matching = [rule for rule in self.rules if rule.matches(path)]
        return max(matching, key=lambda rule: (len(rule.pattern), rule.allow)).allow if matching else True


EVERYTHING = Robots()


def parse_robots(text: str, token: str = TOKEN) -> Robots:
    """Read the rules for us: those of the groups that name us, or else those for everybody."""
    groups: dict[str, list[Rule]] = {}
    delays: dict[str, float] = {}
    agents: list[str] = []
    in_rules = False
    for line in text.replace("\ufeff", "").splitlines()[:20_000]:
        field, separator, value = line.split("#")[0].partition(":")
        field, value = field.strip().lower(), value.strip()
        if not separator:
            continue
        if field == "user-agent":
            agents = [*([] if in_rules else agents), value.lower().split("/")[0].strip()]
            in_rules = False
            groups.setdefault(agents[-1], [])
        elif field in ("allow", "disallow"):
            in_rules = True
            for agent in agents if value else ():
                groups[agent].append(Rule(field == "allow", _normal(value)))
        elif field == "crawl-delay":
            in_rules = True
            for agent in agents:
                delays[agent] = _seconds(value)
    name = token if token in groups else "*"
    return Robots(tuple(groups.get(name, ())), delays.get(name, 0.0))


def _seconds(text: str) -> float:
    try:
        return min(max(float(text), 0.0), LONGEST_DELAY)
    except ValueError:
        return 0.0


def _normal(path: str) -> str:
    """Bring the two ways to write a character in a path into one."""
    return quote(unquote(path.replace("%2F", "%252F").replace("%2f", "%252F")), safe="/*$?&=:@!+,;'()~%-._")
