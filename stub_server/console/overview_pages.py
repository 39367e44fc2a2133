"""The overview: how to begin, the newest requests, what is due next, and four beginnings
by one click.
"""

from flask import Response, g, render_template

from .actions import show_done
from .api_pages import own_sheet
from .filters import read_json
from .programs import front_text, is_for_people, markdown
from .site import beside, contracts, pages

_LISTED = 5
_ORDERS = "/v2/orders"
_PLACES = "createPixOrder"


@beside.get("/")
def overview() -> str | Response:
    """What a person sees who opens the server's address. Programs get what they begin with."""
    if not is_for_people("/"):
        return markdown(front_text())
    if "clock" not in g:
        return render_template("overview.html")
    waiting = g.client.find(_ORDERS, {"status": "pending", "limit": 1})
    return render_template(
        "overview.html",
        key=g.client.credentials["private_key"],
        requests=g.client.control("requests", {"limit": _LISTED})["requests"],
        timers=g.client.control("timers", {"limit": _LISTED})["timers"],
        pending=waiting["orders"][0] if waiting and waiting["orders"] else None,
        places=_PLACES in contracts().api.operations,
    )


@pages.post("/begin/order")
def place_order() -> Response:
    """Place an order as the example of the contract does."""
    sheet = own_sheet(_PLACES)
    return show_done(g.client.change("POST", sheet.path, read_json(sheet.body)))
