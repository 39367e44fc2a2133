"""The clock: what is due, on a line of time, and moving forward to it."""

from typing import Any, NamedTuple

from flask import Response, g, render_template, request

from ..core.clock import DAY, iso, parse_iso
from ..server.request import CONTROL
from .actions import act
from .charts import place
from .filters import ahead_of_utc, clock_time, from_zone, in_zone
from .forms import given
from .site import pages

_LISTED = 25
_WAIT = 5  # seconds that a page waits for deliveries on the way
_UNITS = ("months", "days", "hours")
_COLUMNS = 40  # places on the line in which dots are stacked
_TICKS = 7


class Tick(NamedTuple):
    """A time beside the line."""

    x: float
    label: str


@pages.get("/clock")
def clock() -> str:
    """What is due next."""
    g.clock = g.client.get(f"{CONTROL}/clock")
    found = g.client.get(
        f"{CONTROL}/timers", {"limit": _LISTED, "page": request.args.get("page", "")}
    )
    timers = found["timers"]
    start = parse_iso(g.clock["now"])
    end = parse_iso(timers[-1]["due"]) if timers else start
    jobs, deliveries = _moved() or (None, 0)
    return render_template(
        "console/clock.html",
        dots=[_dot(timer, place(parse_iso(timer["due"]), start, end)) for timer in timers],
        ticks=_ticks(start, end),
        moved=jobs,
        delivered=deliveries,
        tomorrow=in_zone(iso(start + DAY))[:16],
        **found,
    )


@pages.post("/clock/advance")
def advance_clock() -> Response:
    """Move the clock forward, by so much or to an instant."""
    body = given(numbers=_UNITS)
    until = request.form.get("until", "").strip()
    if until:
        body["to"] = from_zone(until)
    return act("POST", f"{CONTROL}/clock/advance", {**body, "wait_seconds": _WAIT})


@pages.post("/clock/stop")
def stop_clock() -> Response:
    """Stop the clock, or let it run again."""
    return act("PATCH", f"{CONTROL}/clock", {"frozen": request.form.get("frozen") == "true"})


def _moved() -> tuple[list[dict[str, Any]], int] | None:
    """What the move ran that led to this page: jobs, and how many deliveries."""
    fired = (g.done or {}).get("fired")
    if fired is None:
        return None
    jobs = [each for each in fired if not each["job"].startswith("webhook.")]
    return jobs, len(fired) - len(jobs)


def _dot(timer: dict[str, Any], x: float) -> dict[str, Any]:
    """A job on the line: dots about the same time are stacked in one column."""
    return timer | {"x": x, "column": int(x * _COLUMNS / 100)}


def _ticks(start: int, end: int) -> list[Tick]:
    """The days along the line, by the visitor's clocks; of many some."""
    ahead = ahead_of_utc()
    days = range(-(-(start + ahead) // DAY) * DAY - ahead, end + 1, DAY)
    shown = days[:: 1 + len(days) // _TICKS]
    ticks = [
        Tick(place(at, start, end), " ".join(clock_time(iso(at)).split(" ")[:2])) for at in shown
    ]
    return [tick for tick in ticks if 8 < tick.x < 90]
