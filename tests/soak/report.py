"""What a soak came to, as a table and as a picture over its time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich.table import Table

from .clients import KINDS
from .run import Outcome, quantile

WIDTH, HEIGHT, LEFT, TOP, BETWEEN = 900, 200, 70, 40, 60
STRETCHES = 40


def table(outcome: Outcome) -> Table:
    """One line for each kind of client."""
    made = Table(
        title=f"{sum(kind.clients for kind in KINDS.values())} clients for {outcome.lasted:.0f} s"
    )
    for name in ("kind", "clients", "answers", "statuses", "p50 ms", "p99 ms", "longest ms"):
        made.add_column(name, justify="left" if name in ("kind", "statuses") else "right")
    for name, kind in KINDS.items():
        times = outcome.times(name)
        found = sorted(
            (status, n) for (whose, status), n in outcome.tally.statuses.items() if whose == name
        )
        statuses = ", ".join(f"{status or 'cut off'}: {n}" for status, n in found)
        figures = (
            [f"{quantile(times, share):.1f}" for share in (0.5, 0.99, 1)] if times else ["", "", ""]
        )
        made.add_row(name, str(kind.clients), str(len(times)), statuses, *figures)
    return made


def picture(outcome: Outcome) -> str:
    """An SVG of two curves: what the server holds, and the p99 of those who behave."""
    step = outcome.lasted / STRETCHES
    waits = [
        (
            number * step,
            quantile(outcome.times(since=number * step, until=(number + 1) * step), 0.99),
        )
        for number in range(STRETCHES)
    ]
    memory = [(at, size / 1024**2) for at, size in outcome.memory]
    height = 2 * (HEIGHT + BETWEEN) + TOP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + LEFT + 20} {height}"',
            ' font-family="sans-serif" font-size="11">',
            f'<rect width="100%" height="{height}" fill="#fff"/>',
            *_curve("Memory of the server, MiB", memory, outcome.lasted, TOP, "#1565c0"),
            *_curve(
                "p99 of well-behaved clients, ms",
                waits,
                outcome.lasted,
                TOP + HEIGHT + BETWEEN,
                "#c62828",
            ),
            "</svg>",
            "",
        ]
    )


def _curve(
    title: str, points: Sequence[tuple[float, float]], lasted: float, top: int, color: str
) -> list[str]:
    most = max(value for _, value in points) * 1.1 or 1
    places = " ".join(
        f"{LEFT + WIDTH * min(at / lasted, 1):.1f},{top + HEIGHT * (1 - value / most):.1f}"
        for at, value in points
    )
    parts = [f'<text x="{LEFT}" y="{top - 10}" font-size="14">{escape(title)}</text>']
    for share in (0, 0.5, 1):
        y = top + HEIGHT * (1 - share)
        parts.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{most * share:.0f}</text>'
        )
        x, bottom = LEFT + WIDTH * share, top + HEIGHT + 16
        parts.append(
            f'<text x="{x:.1f}" y="{bottom}" text-anchor="middle">{lasted * share:.0f} s</text>'
        )
    return [
        *parts,
        f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="1.5"/>',
    ]
