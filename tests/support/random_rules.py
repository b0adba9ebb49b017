"""Random matching rules and resources with values that are close to each other, for the tests of linking."""

from random import Random

from evergraph.linking.measures import MEASURES, Kind, Measure
from evergraph.linking.rules import Combine, Comparison, Group, Node, Rule, Side, Texts
from evergraph.linking.transformations import PLAIN

WORDS = (
    "anna",
    "ana",
    "hanna",
    "annab",
    "ab",
    "ba",
    "a",
    "Äb",
    "tim burton",
    "tim button",
    "burton tim",
    "smith",
    "smyth",
)
THRESHOLDS: dict[Kind, tuple[float, ...]] = {
    Kind.EQUALITY: (0,),
    Kind.DISTANCE: (0, 1, 2, 3),
    Kind.SIMILARITY: (0.0, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0),
}
PROPERTIES = 3


def random_text(random: Random, measure: str) -> str:
    """Make a text that the measure may be able to read, with many near misses."""
    match measure:
        case "number" | "year":
            return str(random.choice([random.randint(-6, 6), random.randint(-60, 60) / 10, "x"]))
        case "date":
            return f"{random.choice(['2023', '-0044', '0000'])}-0{random.randint(1, 3)}-{random.randint(26, 31):02}"
        case "geo":
            latitude = random.choice([90, -90, 0, 48]) + random.randint(-9, 9) / 1000
            longitude = random.choice([180, -180, 0, 11]) + random.randint(-9, 9) / 1000
            text = f"{latitude} {longitude}"
            return text if random.random() < 0.8 else f"POINT({longitude} {latitude})"
    if random.random() < 0.3:
        return random.choice(WORDS)
    words = ["".join(random.choice("aab#é") for _ in range(random.randint(1, 6))) for _ in range(random.randint(1, 3))]
    return " ".join(words)


def random_threshold(random: Random, measure: Measure) -> float:
    """Choose a threshold that means something to the measure."""
    if measure.name == "geo":
        return random.choice([0, 0.2, 0.5, 1, 5, 20_100])
    return random.choice(THRESHOLDS[measure.kind])


def random_comparison(random: Random, measures: list[str]) -> Comparison:
    """Make a comparison of one or two properties of each side."""
    number = random.randrange(PROPERTIES)
    measure = MEASURES[measures[number]]
    transformations = tuple(
        PLAIN[name] for name in random.sample(["lower", "accents", "tokens", "trim"], random.randint(0, 2))
    )
    sides = []
    for _ in range(2):
        properties = (number,) if random.random() < 0.9 else (number, random.randrange(PROPERTIES))
        sides.append(Side(properties, transformations if measure.name not in ("geo",) else ()))
    return Comparison(
        f"{measure.name} of {number}",
        sides[0],
        sides[1],
        measure,
        random_threshold(random, measure),
        weight=random.choice([1, 1, 2, 0.5]),
        required=random.random() < 0.1,
        missing=random.choice([0.0, 0.5, 1.0]) if random.random() < 0.1 else None,
    )


def random_node(random: Random, measures: list[str], depth: int) -> Node:
    """Make a tree."""
    if depth == 0 or random.random() < 0.2:
        return random_comparison(random, measures)
    combine = random.choice(
        [Combine.AND, Combine.AND, Combine.OR, Combine.OR, Combine.AVERAGE, Combine.SUM, Combine.NOT]
    )
    parts = tuple(random_node(random, measures, depth - 1) for _ in range(random.randint(1, 3)))
    return Group(
        combine,
        parts,
        least=random.choice([0, 0.3, 0.5, 0.8, 1]) if combine in (Combine.AVERAGE, Combine.SUM) else 0,
        weight=random.choice([1, 2]),
        required=random.random() < 0.1,
    )


def random_rule(random: Random, measure: str | None = None) -> tuple[Rule, list[str]]:
    """Make a rule, and say which measure each property is made for."""
    measures = [random.choice(list(MEASURES)) for _ in range(PROPERTIES)]
    if measure is not None:
        measures[0] = measure
    return Rule(random_node(random, measures, 2)), measures


def random_texts(random: Random, measures: list[str]) -> Texts:
    """Make a resource: mostly one value for a property, sometimes none or several."""
    return tuple(
        tuple(dict.fromkeys(random_text(random, measure) for _ in range(random.choice([0, 1, 1, 1, 1, 2, 3]))))
        for measure in measures
    )


def random_side(random: Random, measures: list[str], prefix: str, count: int) -> dict[str, Texts]:
    """Make the resources of one side."""
    return {f"<urn:{prefix}{number}>": random_texts(random, measures) for number in range(count)}
