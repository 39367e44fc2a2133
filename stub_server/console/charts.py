"""Pictures over time, as numbers that a template draws as SVG; a table beside each says the same."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..core.clock import parse_iso
from .filters import job

# -- columns

WIDTH, HEIGHT, GAP = 1000.0, 64.0, 0.2  # of the picture, and the part of a column that is left free


class Piece(NamedTuple):
    """A part of a column: what it counts, and where it stands."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class Row(NamedTuple):
    """One column in the table: its name, and a number for each kind."""

    label: str
    counts: tuple[int, ...]


class Chart(NamedTuple):
    """A picture of columns. Each kind is the name of a colour, too."""

    kinds: tuple[str, ...]
    rows: list[Row]
    pieces: list[Piece]

    @property
    def total(self) -> int:
        """Everything that was counted."""
        return sum(sum(row.counts) for row in self.rows)


def columns(kinds: Sequence[str], rows: list[Row]) -> Chart:
    """Columns of stacked pieces, the first kind at the bottom."""
    highest = max((sum(row.counts) for row in rows), default=0) or 1
    wide = WIDTH / max(1, len(rows))
    pieces = []
    for place, row in enumerate(rows):
        base = HEIGHT
        for kind, count in zip(kinds, row.counts, strict=True):
            if count:
                high = max(2.0, count / highest * (HEIGHT - 4))
                base -= high
                pieces.append(Piece(kind, place * wide + wide * GAP / 2, base, wide * (1 - GAP), high))
    return Chart(tuple(kinds), rows, pieces)


# -- the line of what has happened to a subscription and what will

_MARGIN = 2.0  # of a hundred: how far the first and the last mark are from the ends of the line
_KINDS = {"paid": "paid", "refunded": "refused", "disputed": "refused", "failed": "failed", "expired": "failed"}
"""The colours of orders by their state; others have the last one."""
_ENDS = (
    ("canceled_at", "Canceled", "failed"),
    ("ended_at", "Ended", "failed"),
    ("trial_end", "The trial ends", "others"),
)
_TRIAL = "subscription.activate"  # its end is a member of the subscription


class Mark(NamedTuple):
    """One thing on the line. `kind` is the name of a colour; `x` is of a hundred."""

    at: str
    text: str
    kind: str
    order: str | None = None
    x: float = 0.0


class Timeline(NamedTuple):
    """The marks by time, and where the sandbox's now is."""

    marks: list[Mark]
    now: float


def place(time: int, first: int, last: int) -> float:
    """Where an instant is on a line, of a hundred."""
    return _MARGIN + (100 - 2 * _MARGIN) * max(0, time - first) / max(1, last - first)


def of_subscription(
    body: dict[str, Any], orders: list[dict[str, Any]], timers: list[dict[str, Any]], now: str
) -> Timeline | None:
    """The line of a subscription, None where nothing on it has another time."""
    marks = sorted(_marks(body, orders, timers, now), key=lambda mark: mark.at)
    times = [parse_iso(mark.at) for mark in marks]
    first, last = min(times, default=0), max([*times, parse_iso(now)])
    if not times or first == last:
        return None
    placed = [mark._replace(x=place(time, first, last)) for mark, time in zip(marks, times, strict=True)]
    return Timeline(placed, place(parse_iso(now), first, last))


def _marks(
    body: dict[str, Any], orders: list[dict[str, Any]], timers: list[dict[str, Any]], now: str
) -> Iterator[Mark]:
    if body.get("createdAt"):
        yield Mark(body["createdAt"], "Created", "accepted")
    for member, text, kind in _ENDS:
        if body.get(member):
            yield Mark(body[member], text, "due" if body[member] > now else kind)
    for order in orders:
        text = f"Order {order.get('code') or order['id']}: {order['status']}"
        yield Mark(order["createdAt"], text, _KINDS.get(order["status"], "others"), order["id"])
    for timer in timers:
        if timer["job"] != _TRIAL:
            yield Mark(timer["due"], job(timer["job"]), "due")
    if body.get("next_billing_at") and body["next_billing_at"] > now:
        yield Mark(body["next_billing_at"], "It is to be paid", "due")
