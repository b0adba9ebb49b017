"""Line plots as SVG, without any library: enough to see how time grows."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

_WIDTH, _HEIGHT, _MARGIN = 640, 360, 60
_COLOURS = ("#1f6fb2", "#c8432b", "#3b8f4a", "#8a5fb0", "#b8860b", "#5c6670")
Points = Sequence[tuple[float, float]]


def plot(path: Path, title: str, x: str, y: str, lines: Mapping[str, Points], *, log: bool = False) -> None:
    """Draw named lines; with ``log``, both axes are logarithmic."""
    points = [point for line in lines.values() for point in line]
    scale_x, scale_y = (_Scale([point[axis] for point in points], log=log) for axis in (0, 1))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{escape(title)}</text>',
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(x)}</text>',
        f'<text transform="translate(14,{_HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(y)}</text>',
    ]
    for value in scale_x.ticks():
        place = _across(scale_x.place(value))
        parts.append(f'<line x1="{place}" x2="{place}" y1="{_down(0)}" y2="{_down(1)}" stroke="#ddd"/>')
        parts.append(f'<text x="{place}" y="{_down(0) + 16}" text-anchor="middle">{_number(value)}</text>')
    for value in scale_y.ticks():
        place = _down(scale_y.place(value))
        parts.append(f'<line x1="{_across(0)}" x2="{_across(1)}" y1="{place}" y2="{place}" stroke="#ddd"/>')
        parts.append(f'<text x="{_across(0) - 6}" y="{place + 4}" text-anchor="end">{_number(value)}</text>')
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = " ".join(f"{_across(scale_x.place(a)):.1f},{_down(scale_y.place(b)):.1f}" for a, b in line)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{_across(0) + 8}" y="{_down(1) + 16 * (number + 1)}" fill="{colour}">{escape(name)}</text>'
        )
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


class _Scale:
    def __init__(self, values: list[float], *, log: bool) -> None:
        self._log = log
        low, high = min(values), max(values)
        self._low = math.log10(max(low, 1e-9)) if log else min(0.0, low)
        self._high = math.log10(max(high, 1e-9)) if log else high
        if self._high <= self._low:
            self._high = self._low + 1

    def place(self, value: float) -> float:
        """Return where a value stands, between 0 and 1."""
        value = math.log10(max(value, 1e-9)) if self._log else value
        return (value - self._low) / (self._high - self._low)

    def ticks(self) -> list[float]:
        """Return about five round values."""
        if self._log:
            return [10.0**power for power in range(math.ceil(self._low), math.floor(self._high) + 1)]
        step = 10 ** math.floor(math.log10((self._high - self._low) / 2))
        while (self._high - self._low) / step > 6:
            step *= 2
        return [step * number for number in range(math.ceil(self._low / step), math.floor(self._high / step) + 1)]


def _across(place: float) -> float:
    return _MARGIN + place * (_WIDTH - 2 * _MARGIN)


def _down(place: float) -> float:
    return _HEIGHT - _MARGIN - place * (_HEIGHT - 2 * _MARGIN)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"
