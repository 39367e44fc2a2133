"""Pictures over time, which templates draw as SVG; a table beside each says the same."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core.clock import parse_iso
from .filters import job

# -- columns


class Row(NamedTuple):
    """One column: its name, and a number for each kind, the first at the bottom."""

    label: str
    counts: tuple[int, ...]


class Chart(NamedTuple):
    """Columns of stacked pieces. Each kind is the name of a colour, too."""

    kinds: tuple[str, ...]
    rows: list[Row]

    @property
    def total(self) -> int:
        """Everything that was counted."""
        return sum(sum(row.counts) for row in self.rows)

    @property
    def highest(self) -> int:
        """What the highest column counts."""
        return max(sum(row.counts) for row in self.rows)


# -- the line of what has happened to a subscription and what will

_MARGIN = 2.0  # of a hundred: how far the first and the last mark are from the ends of the line
_KINDS = {
    "paid": "paid",
    "refunded": "refused",
    "disputed": "refused",
    "failed": "failed",
    "expired": "failed",
}
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
    placed = [
        mark._replace(x=place(time, first, last)) for mark, time in zip(marks, times, strict=True)
    ]
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
