"""What a payer sees: one order, a way to pay it, a receipt. Its address opens it, without a
session.

The address has the id of the order, and on a public server the `k` that the order's control shows.

`pages.py` permits these views to ask for this order alone, and nothing but to pay, expire or fail
it. Payers have no
session: a form is bound to its order. Wrong addresses are not counted: `k` is too long to guess,
and a plain server hides no order from its machine.
"""

import hmac
import re
from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, Response, g, make_response, render_template, request
from werkzeug.exceptions import HTTPException, NotFound

from ..contract.source import JsonObject
from ..server.request import CONTROL
from .actions import go
from .addresses import here, split
from .client import ASK, Client, Refused
from .pages import MOVES, PAY
from .shell import check_form
from .site import contracts

_BOLETO = re.compile(r"^(\d{5})(\d{5})(\d{5})(\d{6})(\d{5})(\d{6})(\d)(\d{14})$")
"""The digits of a boleto as banks print them:

`AAAAA.AAAAA BBBBB.BBBBBB CCCCC.CCCCCC D EEEEEEEEEEEEEE`.
"""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE).fullmatch

payers = Blueprint("pay", __name__, url_prefix=PAY.rstrip("/"))


@payers.before_request
def begin() -> None:
    """Give the views a client without a key, the zone of Brasília, and the texts of the
    payer's language.
    """
    g.zone = "brasilia"
    g.client = Client(request.environ[ASK], request.headers.get("Host", ""), {})
    known = contracts().payer_texts
    read = [language.partition("-")[0].lower() for language in request.accept_languages.values()]
    wanted = [request.args.get("lang", ""), *read, *known]
    g.texts = next(known[each] for each in wanted if each in known)


@payers.context_processor
def shown_in_all() -> JsonObject:
    """What the templates of payers use."""
    return {"say": g.texts}


@payers.after_request
def keep_nothing(response: Response) -> Response:
    """What a payer sees is of this moment."""
    response.headers["Cache-Control"] = "no-store"
    return response


@payers.get("/<ident>")
def order(ident: str) -> str:
    """The order, to be paid or as it ended."""
    return _page(_order(ident))


@payers.post("/<ident>/<any(pay, expire, fail):move>")
def move(ident: str, move: str) -> Response:
    """Pay, expire or fail the order. Raises Stranger."""
    check_form(_mark(ident))
    shown = _order(ident)
    is_late = move == "pay" and shown["order"]["status"] == "expired"
    path = f"{CONTROL}/orders/{ident}/{move}"
    reply = g.client.change("POST", path, {"late": True} if is_late else None)
    if reply.is_refused:
        refused = Refused(reply)
        return make_response(_page(_order(ident), g.texts["moved"]), refused.status)
    return go(_address(ident))


@payers.get("/<ident>/<move>")
def back(ident: str, move: str) -> Response:
    """Lead from the address of a form to the page of its order."""
    if move not in MOVES:
        raise NotFound
    return go(_address(ident))


@payers.route("/", defaults={"rest": ""})
@payers.route("/<path:rest>")
def nothing(rest: str) -> Response:
    """No other path is a page of payers. Raises NotFound."""
    raise NotFound


@payers.errorhandler(HTTPException)
def failed(error: HTTPException) -> Response:
    """A page that says why there is nothing to pay."""
    return make_response(render_template("pay/nothing.html", error=error), error.code or 500)


def _key() -> dict[str, str]:
    """The query of the addresses of this order."""
    lang = request.args.get("lang", "")
    return {"k": request.args.get("k", ""), "lang": lang if lang in contracts().payer_texts else ""}


def _address(ident: str) -> str:
    return here(f"{PAY}{ident}", _key())


def _order(ident: str) -> Any:
    """The order as the control surface shows it. Raises NotFound, also for a wrong key."""
    if _ID(ident) is None:
        raise NotFound
    try:
        g.clock = g.client.control("clock")
        shown = g.client.control(f"orders/{ident}")
    except Refused as error:
        if error.status >= 500:
            raise HTTPException(error.message, Response(error.message, error.status)) from None
        raise NotFound from None
    expected = urlsplit(shown["pay_url"]).query
    if expected and not hmac.compare_digest(expected.encode(), f"k={_key()['k']}".encode()):
        raise NotFound
    return shown


def _page(shown: Any, problem: str | None = None) -> str:
    order = shown["order"]
    payment = order["last_transaction"]
    is_paid = order["status"] in ("paid", "refunded", "disputed")
    return render_template(
        "pay/order.html",
        shown=shown,
        order=order,
        payment=payment,
        problem=problem,
        is_paid=is_paid,
        line=_BOLETO.sub(r"\1.\2 \3.\4 \5.\6 \7 \8", payment.get("line", "")),
        back=outward(shown["success_url" if is_paid else "cancel_url"]),
        path=f"{PAY}{order['id']}",
        key=_key(),
        token=contracts().sessions.token(_mark(order["id"])),
    )


def _mark(ident: str) -> str:
    """What the forms of an order are bound to. No visitor has such an id."""
    return f"{PAY}{ident.lower()}"


def outward(address: str | None) -> str | None:
    """An address that a page may link to: of the web, or none."""
    parts = split(address or "")
    return address if parts.scheme in ("http", "https") and parts.hostname else None
