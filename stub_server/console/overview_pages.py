"""The overview: how to begin, the newest requests, what is due next, and four beginnings
by one click.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from flask import Response, abort, g, render_template

from ..server.request import CONTROL
from .actions import act
from .forms import example_of
from .programs import HTML, JSON, front_text, front_wanted, index, markdown
from .site import beside, contracts, pages

_LISTED = 5
_ORDERS = "/v2/orders"
_PLACES = "createPixOrder"
Call: TypeAlias = tuple[str, Any]
"""A path to post to, and the body."""
_BREAKS = {"name": "The next request fails", "when": {"times": 1}, "then": {"status": 503}}


@beside.get("/")
def overview() -> str | Response:
    """What a person sees who opens the server's address. Programs get what they begin with."""
    kind = front_wanted()
    if kind != HTML:
        return index() if kind == JSON else markdown(front_text())
    info = contracts().api.raw["info"]
    if "clock" not in g:
        return render_template(
            "overview.html", info=info, settings=contracts().settings, is_known=False
        )
    return render_template(
        "overview.html",
        info=info,
        settings=contracts().settings,
        is_known=True,
        key=g.client.credentials["private_key"],
        requests=g.client.get(f"{CONTROL}/requests", {"limit": _LISTED})["requests"],
        timers=g.client.get(f"{CONTROL}/timers", {"limit": _LISTED})["timers"],
        pending=_pending_order(),
        places=_PLACES in contracts().api.operations,
    )


@pages.post("/begin/<what>")
def begin_with(what: str) -> Response:
    """Do what a newcomer would do first, and show the overview again."""
    if what not in _BEGINNINGS:
        abort(404)
    path, body = _BEGINNINGS[what]()
    return act("POST", path, body, to="/")


def _pending_order() -> dict[str, Any] | None:
    """The newest order that waits for its payment."""
    found = g.client.find(_ORDERS, {"status": "pending", "limit": 1})
    return found["orders"][0] if found and found["orders"] else None


def _place() -> Call:
    operation = contracts().api.operations.get(_PLACES)
    if operation is None:
        abort(404)
    return operation.path, example_of(_PLACES)


def _pay() -> Call:
    order = _pending_order()
    if order is None:
        abort(404, "No order waits for its payment.")
    return f"{CONTROL}/orders/{order['id']}/pay", None


_BEGINNINGS: dict[str, Callable[[], Call]] = {
    "order": _place,
    "pay": _pay,
    "month": lambda: (f"{CONTROL}/clock/advance", {"months": 1, "wait_seconds": 5}),
    "fault": lambda: (f"{CONTROL}/faults", _BREAKS),
}
