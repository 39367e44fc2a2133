"""What changes a sandbox from a page: a call of a control or an operation, and the line that says
what was done.
"""

from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from flask import Response, g, redirect, request

from ..contract.source import JsonObject
from ..server.layers.inside import Reply
from ..server.request import CONTROL
from .addresses import DONE, here, own
from .client import Refused
from .filters import singular
from .forms import filled
from .pages import PAY
from .site import pages

_MAKES = {
    "addPersona": ("/console/data/customers", "customer"),
    "triggerEvent": ("/console/events", "event"),
    "sendTestWebhook": ("/console/webhooks/deliveries", "log"),
}
"""Operations that make what has a page: its address, and the member of the answer."""
_SOLD = ("orders", "subscriptions")
_LINKED = 8  # changes whose pages the line about an action leads to


@pages.post("/do/<ident>")
def act(ident: str) -> Response:
    """Call the operation that a form names with what the form has, and show what was done: the page
    of what it made, or that of the form's `back`.

    Raises Refused where the visitor must give a key first.
    """
    reply, to = g.client.change(*filled(ident)), None
    if ident in _MAKES and reply.json and not reply.is_refused:
        page, member = _MAKES[ident]
        to = f"{page}/{reply.json[member]['id']}"
    return show_done(reply, to)


def show_done(reply: Reply, to: str | None = None) -> Response:
    """Lead to a page that says what became of a request, such as `to`, a path of the console."""
    address = own(request.form.get("back", "") if to is None else to)
    mark = f"{DONE}={quote(reply.request_id) or 'lost'}"
    return go(address + ("&" if "?" in address else "?") + mark)


def go(address: str) -> Response:
    """Lead to another page, asked for by GET."""
    answer = redirect(address, 303)
    assert isinstance(answer, Response)
    return answer


def done() -> JsonObject | None:
    """The action that led here, as the journal has it, None where a fault rule dropped it, with
    its steps and the pages of what it made.
    """
    ident = request.args.get(DONE)
    if ident == "lost":
        return {"found": None}
    found = journaled(ident) if ident else None
    if found is None:
        return None
    steps = steps_of(found)
    return {"found": found, "steps": steps, "links": links(found, steps)}


def kept(ident: str) -> Any:
    """A request as the journal has it. Raises Refused."""
    return g.client.control(f"requests/{quote(ident, safe='')}")["request"]


def journaled(ident: str) -> Any:
    """The same, None for readers who may not see it."""
    try:
        return kept(ident)
    except Refused:
        return None


def steps_of(found: JsonObject, most: int = 1) -> Any:
    """The newest steps of a request of the journal."""
    return g.client.control("steps", {"cause": found["id"], "limit": most})["steps"]


def links(found: JsonObject, steps: list[JsonObject]) -> list[tuple[str, str]]:
    """The pages of what a request of one step sold or made: text and address."""
    changes = steps[0]["changes"] if found["step"] is not None and steps else []
    leading = []
    for each in changes[:_LINKED]:
        kind, ident = each["resource"], each["id"]
        is_made = each["change"] == "created" and kind != "webhook_logs"
        if kind not in _SOLD and not is_made:
            continue
        leading.append((f"The {singular(kind)}", here(f"/console/data/{kind}/{ident}")))
        inspected = g.client.find(f"{CONTROL}/orders/{ident}") if kind == "orders" else None
        if inspected is not None:
            leading.append(("Its pay page", pay_page(inspected)))
    if leading and found["deliveries"]:
        leading.append(("Its deliveries", here(f"/console/requests/{found['id']}") + "#deliveries"))
    return leading


def pay_page(inspected: JsonObject) -> str:
    """The address of an order's pay page, by what the control of orders answers."""
    return here(
        f"{PAY}{inspected['order']['id']}", dict(parse_qsl(urlsplit(inspected["pay_url"]).query))
    )


def plain_text(text: str) -> Response:
    """A text alone, as it is."""
    return Response(text, mimetype="text/plain")
