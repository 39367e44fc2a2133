"""The clock: what is due, and moving forward to it."""

from typing import Any

from flask import Response, g, render_template, request

from ..core.clock import DAY, iso, parse_iso
from ..server.request import CONTROL
from .actions import act
from .filters import from_zone, in_zone
from .forms import given
from .site import pages

_LISTED = 25
_WAIT = 5  # seconds that a page waits for deliveries on the way
_UNITS = ("months", "days", "hours")


@pages.get("/clock")
def clock() -> str:
    """What is due next."""
    g.clock = g.client.get(f"{CONTROL}/clock")
    found = g.client.get(
        f"{CONTROL}/timers", {"limit": _LISTED, "page": request.args.get("page", "")}
    )
    jobs, deliveries = _moved() or (None, 0)
    return render_template(
        "console/clock.html",
        moved=jobs,
        delivered=deliveries,
        tomorrow=in_zone(iso(parse_iso(g.clock["now"]) + DAY))[:16],
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
