"""The overview: how to begin, the newest requests, what is due next, and four beginnings by one click."""

from typing import Any

from flask import Response, abort, g, render_template

from ..contract.document import Document
from ..server.layers.inside import Reply
from ..server.request import CONTROL
from .actions import change, show_done
from .programs import HTML, JSON, front_text, front_wanted, index
from .site import beside, contracts, pages

_LISTED = 5
_ORDERS = "/v2/orders"
_PLACES = "createPixOrder"
_BREAKS = {"name": "The next request fails", "when": {"times": 1}, "then": {"status": 503}}


@beside.get("/")
def overview() -> str | Response:
    """What a person sees who opens the server's address. Programs get what they begin with."""
    kind = front_wanted()
    if kind != HTML:
        return index() if kind == JSON else front_text()
    info = contracts().api.raw["info"]
    if "clock" not in g:
        return render_template("overview.html", info=info, settings=contracts().settings, is_known=False)
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
    return show_done(_BEGINNINGS[what](), "/")


def _pending_order() -> dict[str, Any] | None:
    """The newest order that waits for its payment."""
    found = g.client.find(_ORDERS, {"status": "pending", "limit": 1}, is_hidden=True)
    return found["orders"][0] if found and found["orders"] else None


def _place() -> Reply:
    """Place the order of the contract's first example, with ids of this sandbox."""
    live = Document(g.client.get("/openapi.json"))
    operation = live.operations.get(_PLACES)
    if operation is None:
        abort(404)
    return change("POST", operation.path, next(iter(live.examples(operation.raw["requestBody"])), {}))


def _pay() -> Reply:
    order = _pending_order()
    if order is None:
        abort(404, "No order waits for its payment.")
    return change("POST", f"{CONTROL}/orders/{order['id']}/pay")


def _go_on() -> Reply:
    return change("POST", f"{CONTROL}/clock/advance", {"months": 1, "wait_seconds": 5})


def _break() -> Reply:
    return change("POST", f"{CONTROL}/faults", _BREAKS)


_BEGINNINGS = {"order": _place, "pay": _pay, "month": _go_on, "fault": _break}
