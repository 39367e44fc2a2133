"""Lines over a logarithmic scale of sizes, as an SVG."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from math import ceil, log10
from typing import NamedTuple

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 960, 560, 60, 40, 300, 50


class Line(NamedTuple):
    """One cost at each size."""

    name: str
    costs: tuple[float, ...]


def draw(title: str, sizes: Sequence[int], lines: Sequence[Line]) -> str:
    """The picture: sizes to the right, costs upwards from nought, names beside their lines' ends."""
    highest = _ceiling(max(max(line.costs) for line in lines))
    low, high = log10(sizes[0]), log10(sizes[-1])
    across, up = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(size: int) -> float:
        return LEFT + (log10(size) - low) / ((high - low) or 1) * across

    def y(cost: float) -> float:
        return TOP + up * (1 - cost / highest)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"',
        ' font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)} by number of orders</text>',
    ]
    for step in range(6):
        cost = highest * step / 5
        parts.append(f'<path d="M{LEFT} {y(cost):.1f}H{LEFT + across}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(cost) + 4:.1f}" text-anchor="end">{cost:g}</text>')
    for size in sizes:
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{size:,}</text>')
    places = _apart([y(line.costs[-1]) for line in lines], 13, HEIGHT - BOTTOM)
    for number, (line, place) in enumerate(zip(lines, places, strict=True)):
        color = f"hsl({number * 360 // len(lines)} 65% 40%)"
        points = " ".join(f"{x(size):.1f},{y(cost):.1f}" for size, cost in zip(sizes, line.costs, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        end, ends = LEFT + across, y(line.costs[-1])
        parts.append(f'<path d="M{end} {ends:.1f}L{end + 22} {place:.1f}" stroke="{color}" stroke-width=".6"/>')
        told = f"{escape(line.name)} {line.costs[-1]:.0f}"
        parts.append(f'<text x="{end + 26}" y="{place + 4:.1f}" fill="{color}">{told}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _ceiling(cost: float) -> float:
    unit = float(10 ** (ceil(log10(cost)) - 1))
    return ceil(cost / unit) * unit


def _apart(places: Sequence[float], gap: float, lowest: float) -> list[float]:
    """The same places moved so far that names do not cover each other, all above `lowest`."""
    order = sorted(range(len(places)), key=lambda number: places[number])
    moved = list(places)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + gap)
    for number in reversed(order):
        moved[number] = min(moved[number], lowest)
        lowest = moved[number] - gap
    return moved
