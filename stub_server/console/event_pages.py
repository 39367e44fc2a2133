"""Events: what happened with its cause, one event with its deliveries, and events that are raised
by hand.
"""

from flask import Response, abort, g, render_template

from ..server.request import CONTROL
from .actions import go
from .addresses import here
from .forms import listed
from .site import pages

_LISTED = 25


@pages.get("/events")
def events() -> str:
    """The events, newest first."""
    found = listed(
        f"{CONTROL}/events", "listEvents", _LISTED, without=("id", "after", "wait"), events=[]
    )
    return render_template("console/events.html", **found)


@pages.get("/events/<ident>")
def one_event(ident: str) -> str | Response:
    """One event: its payload, its cause and its deliveries."""
    ident = ident[:64]
    found = g.client.control("events", {"id": ident})["events"]
    logs = g.client.get("/v2/webhooks/logs", {"event_id": ident, "limit": 100})["logs"]
    if not found and logs:  # the log has dropped it, its deliveries are kept
        return go(here(f"/console/webhooks/deliveries/{logs[0]['id']}"))
    if not found:
        abort(404, "There is no such event, or it is no longer kept.")
    steps = g.client.control("steps", {"event_id": ident})["steps"]
    return render_template(
        "console/event.html",
        event=found[0],
        step=steps[0] if steps else None,
        logs=logs,
    )
