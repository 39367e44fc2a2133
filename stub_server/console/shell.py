"""The shell of every page: who asks, the head with sandbox, finder and clock, the side list,
refusals as pages.

A page is a view of `pages` or `beside`: it asks through `g.client`, and renders a template that
extends `shell.html`. An action is a view of a POST that ends with `act`.
"""

from typing import Any
from urllib.parse import quote

from flask import Response, g, make_response, render_template, request
from jinja2 import Environment
from jinja2.runtime import Context
from werkzeug.exceptions import HTTPException

from ..contract.source import JsonObject
from ..core.text import nearest
from ..server.layers.routing import DOCS
from .actions import done, go
from .addresses import here, split, there, this_sandbox, with_query
from .client import ASK, VISITOR, Client, Refused
from .filters import ZONES
from .pages import GUIDE
from .programs import HTML, is_for_people, lost
from .sessions import cookie_name
from .site import beside, contracts, pages

NOW = ("requests", "data", "clock", "events", "webhooks", "inboxes", "faults")
FOOT = ("sandboxes", "keys")
"""The pages in the side list: their paths below `/console/`, which are their names too."""
_ZONE = "stub_zone"


class Stranger(HTTPException):
    """403 for a form that no page of this server has made for this visitor."""

    code = 403


# -- before and after a view


@pages.before_app_request
def choose_zone() -> Response | None:
    """The zone in which a visitor reads times; a link of the head chooses another one."""
    g.zone = request.cookies.get(_ZONE)
    if g.zone not in ZONES:
        g.zone = next(iter(ZONES))
    chosen = request.args.get("zone")
    if chosen not in ZONES or request.method != "GET":
        return None
    answer = go(with_query(zone=None))
    answer.set_cookie(_ZONE, chosen, path="/", samesite="Lax", max_age=31_536_000)
    return answer


@pages.before_request
def begin() -> Any:
    """Know the visitor; refuse strange forms; load what the head shows."""
    know_visitor()
    if request.method == "POST":
        check_form(g.visitor.ident)
        return None
    if g.visitor.is_new and request.headers.get("Sec-Fetch-Site") == "cross-site":
        # The browser keeps the cookie back when a page of another site leads here. It sends it when
        # this one does.
        g.visitor = g.visitor._replace(is_new=False)
        return render_template("console/arrival.html")
    load_head()
    return None


@beside.before_request
def begin_beside() -> None:
    """Load the head for a reader who may see it. A page of elsewhere that leads here or reads this
    gets none.

    A browser keeps the cookie back when a page of another site leads here: a new one would end the
    session.
    """
    origin = request.headers.get("Origin")
    is_read_elsewhere = origin is not None and split(origin).netloc != request.headers.get("Host")
    if is_read_elsewhere or request.headers.get("Sec-Fetch-Site") == "cross-site":
        return
    know_visitor()
    try:
        load_head()
    except Refused:
        g.pop("clock", None)


def know_visitor() -> None:
    """Whose browser this is, and a client with the keys of their session."""
    g.visitor = request.environ[VISITOR]
    g.client = Client(request.environ[ASK], request.headers.get("Host", ""), g.visitor.keys)


def load_head() -> None:
    """Load what the head shows: before each GET, and by a view that shows a form again
    which was refused.
    """
    if "clock" in g:
        return
    g.clock = g.client.control("clock")
    g.done = done() if request.method == "GET" else None


def check_form(ident: str) -> None:
    """Whether a page of this server made the form for the visitor of this id. Raises Stranger."""
    origin = split(request.headers.get("Origin", ""))
    if origin.scheme not in ("http", "https") or origin.netloc != request.headers.get("Host"):
        raise Stranger("This form was not sent by a page of this server, so nothing was done.")
    if not contracts().sessions.knows(ident, request.form.get("token", "")):
        raise Stranger(
            "This form is older than the server or your session. Reload the page and send it again."
        )


@pages.after_app_request
def remember(response: Response) -> Response:
    """Give a new visitor an id, which its forms are bound to."""
    visitor = g.get("visitor")
    if visitor is not None:
        response.headers["Cache-Control"] = "no-store"
        if visitor.is_new and response.mimetype == HTML:  # what programs read has no forms
            give_cookie(response, visitor.ident, "/")
    return response


def give_cookie(response: Response, ident: str, path: str) -> None:
    """Set the visitor's cookie, for as long as the browser is open."""
    name = cookie_name(request.headers.get("Host", ""))
    is_secure = contracts().url.startswith("https://")
    response.set_cookie(name, ident, path=path, httponly=True, samesite="Strict", secure=is_secure)


class Forgotten(Context):
    """What the templates of a page know.

    It and macros refer to each other: all that a page showed would wait for the garbage collector,
    which seldom looks at what a page is made of.
    """

    def __init__(self, environment: Environment, parent: dict[str, Any], *rest: Any, **named: Any):
        super().__init__(environment, parent, *rest, **named)
        if "known" in parent:  # else it is of macros that are the same for every page
            g.setdefault("contexts", []).append(self)


@pages.teardown_app_request
def forget(error: BaseException | None) -> None:
    """Let go of what a page showed."""
    request.routing_exception = None  # it refers to the request
    for context in g.pop("contexts", ()):
        context.parent = context.vars = {}


@pages.app_context_processor
def shared() -> JsonObject:
    """What templates use."""
    known = contracts()
    return {
        "here": here,
        "there": there,
        "with_query": with_query,
        "sandbox": this_sandbox(),
        "base_url": known.url + request.script_root,
        "url_of": lambda name: known.url + ("" if name == "default" else f"/s/{quote(name)}"),
        "known": known,
        "zones": ZONES,
        "now_pages": NOW,
        "foot_pages": FOOT,
        "token_of": lambda: known.sessions.token(g.visitor.ident),
        "this_page": request.full_path.rstrip("?"),
        "sandboxes": _sandboxes,
        "operation_of": known.operation,
    }


def _sandboxes() -> list[str]:
    """The names of the sandboxes that the head offers; none for those who have the key of one."""
    try:
        found = g.client.control("sandboxes", {"limit": 50})["sandboxes"]
    except Refused:
        return []
    return sorted(
        {each["name"] for each in found} | {"default"}, key=lambda name: (name != "default", name)
    )


# -- refusals


def key_page(message: str) -> str:
    """The question for a key."""
    back = request.form.get("back") or request.full_path.rstrip("?")
    return render_template("console/key.html", message=message, back=back)


@pages.app_errorhandler(Refused)
def refused(error: Refused) -> tuple[str, int]:
    """What the control surface refuses is a page: the question for a key, or what it said."""
    if error.code == "admin_key_required":
        return key_page(error.message), 403
    is_missing = error.code == "sandbox_not_found"
    return render_template("console/refused.html", error=error, is_missing=is_missing), error.status


@pages.app_errorhandler(HTTPException)
def failed(error: HTTPException) -> Response:
    """A path or a form that is none of these pages, with what it may have been."""
    path, similar = request.path, None
    if error.code == 404:
        error.description, similar = "There is no such page.", _similar(path)
        if not is_for_people(path):
            return lost(error.description, similar)
    if "visitor" not in g:
        know_visitor()
    html = render_template("console/failed.html", error=error, similar=similar)
    return make_response(html, error.code or 500)


def _similar(path: str) -> str | None:
    """The path of the page whose name is most like the end of one that is none, or of a section
    of the guide.
    """
    guide = contracts().guide
    pages_of = {each: f"/console/{each}" for each in (*NOW, *FOOT)}
    pages_of |= {address: f"{GUIDE}/{address}" for address in guide.pages}
    pages_of |= {name: f"{DOCS}/{name}" for name in guide.names}
    last = path.rpartition("/")[2].removesuffix(".md")
    name = nearest(last, [*pages_of])
    if name is not None:
        return pages_of[name]
    return guide.section(last) if path.startswith(f"{GUIDE}/") else None
