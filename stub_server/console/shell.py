"""What every page of the console has: who asks, the head with sandbox and clock, the line after an action.

A page is a view of `pages`: it asks through `g.client`, and renders a template that extends `shell.html`. An action is
a view of a POST that ends with `act`. Refusals of the control surface become pages here.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from flask import Blueprint, Response, current_app, g, make_response, redirect, render_template, request
from werkzeug.exceptions import HTTPException

from ..contract.document import Document, Operation
from ..core.text import SAFE_IN_PATHS
from ..server.layers.inside import Reply
from ..server.request import CONTROL
from .client import ASK, VISITOR, Client, Refused
from .filters import words
from .guide.guide import Guide
from .sessions import ADMIN_KEY, CONTROL_KEY, Sessions, cookie_name, new_visitor

NAV = ("requests", "data", "clock", "events", "webhooks", "inboxes", "sandboxes", "faults", "keys")
"""The pages in the navigation: their paths below `/console/`, which are their names too."""
DONE = "done"
"""The query parameter that names the request of the action that led to a page."""
_LONGEST_KEY = 1_000
EXTENSION = "stub_server"

pages = Blueprint("console", __name__, url_prefix="/console")


@dataclass(frozen=True, slots=True)
class Contracts:
    """What pages read beside what they ask: the contracts, the server's address and version."""

    api: Document
    control: Document
    url: str
    version: str
    sessions: Sessions
    guide: Guide

    def operation(self, ident: str | None) -> Operation | None:
        """An operation of either contract."""
        return self.api.operations.get(ident or "") or self.control.operations.get(ident or "")


def contracts() -> Contracts:
    """Those of this application."""
    found: Contracts = current_app.extensions[EXTENSION]
    return found


class Stranger(HTTPException):
    """403 for a form that no page of this server has made for this visitor."""

    code = 403


# -- addresses: relative, so that they hold under whatever name and path the server goes by


def here(path: str, query: dict[str, Any] | None = None) -> str:
    """The address of a path of this sandbox, such as `/console/requests`."""
    found = "../" * (request.path.count("/") - 1) + quote(path.lstrip("/"), safe=SAFE_IN_PATHS)
    encoded = urlencode({name: value for name, value in (query or {}).items() if value not in (None, "")})
    return (found or "./") + (f"?{encoded}" if encoded else "")


def this_sandbox() -> str:
    """The name of the sandbox of this page."""
    return request.script_root.rpartition("/")[2] or "default"


def there(name: str, path: str) -> str:
    """The address of the same path in another sandbox."""
    up = "../../" if request.script_root else ""
    below = "" if name == "default" else f"s/{quote(name)}/"
    return "../" * (request.path.count("/") - 1) + up + below + path.lstrip("/")


def with_query(**changes: Any) -> str:
    """The address of this page with another query; None takes a parameter out."""
    query = {name: value for name, value in request.args.items() if name != DONE} | changes
    return here(request.path, query)


def split(address: str) -> SplitResult:
    """The parts of an address, all empty of what is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", "", "", "", "")


def _own(address: str) -> str:
    """A path and query of the console that a form names, the list of requests for anything else."""
    parts = split(address)
    is_own = not parts.scheme and not parts.netloc and parts.path.startswith("/console/") and "\\" not in address
    if not is_own:
        return here("/console/requests")
    return here(parts.path, {name: value for name, value in parse_qsl(parts.query) if name != DONE})


# -- before and after a view


@pages.before_request
def begin() -> Any:
    """Know the visitor; refuse strange forms; load what the head shows."""
    _know_visitor()
    if request.method == "POST":
        check_form(g.visitor.ident)
        return None
    if g.visitor.is_new and request.headers.get("Sec-Fetch-Site") == "cross-site":
        # The browser keeps the cookie back when a page of another site leads here. It sends it when this one does.
        g.visitor = g.visitor._replace(is_new=False)
        return render_template("console/arrival.html")
    load_head()
    g.done = _done()
    return None


def load_head() -> None:
    """Load what the head shows: before each GET, and by a view that shows a form again which was refused."""
    if "clock" not in g:
        g.clock = g.client.get(f"{CONTROL}/clock", is_hidden=True)


def _know_visitor() -> None:
    g.visitor = request.environ[VISITOR]
    g.client = Client(request.environ[ASK], request.headers.get("Host", ""), g.visitor.keys)


def know_reader() -> bool:
    """Know the visitor of a page beside the console that has a form; False where no cookie of theirs can be told.

    A browser keeps the cookie back when a page of another site leads here: a new one would end the session.
    """
    if _is_strange():
        return False
    _know_visitor()
    return True


def _is_strange() -> bool:
    """Whether a page of elsewhere has led to a page beside the console, or reads it."""
    return request.headers.get("Sec-Fetch-Site") == "cross-site" or "Origin" in request.headers


def recent_requests(count: int) -> list[Any] | None:
    """The newest requests and the clock, for a page beside the console; None where strangers may not see them.

    A session opens the console alone, so its key is not used: pages of other origins may read the page that asks.
    """
    if _is_strange():
        return None
    client = Client(request.environ[ASK], request.headers.get("Host", ""), {})
    try:
        found: list[Any] = client.get(f"{CONTROL}/requests", {"limit": count})["requests"]
        g.clock = client.get(f"{CONTROL}/clock")
    except Refused:
        return None
    return found


def check_form(ident: str) -> None:
    """Whether a page of this server made the form for the visitor of this id. Raises Stranger."""
    origin = split(request.headers.get("Origin", ""))
    if origin.scheme not in ("http", "https") or origin.netloc != request.headers.get("Host"):
        raise Stranger("This form was not sent by a page of this server, so nothing was done.")
    if not contracts().sessions.knows(ident, request.form.get("token", "")):
        raise Stranger("This form is older than the server or your session. Reload the page and send it again.")


@pages.after_app_request
def remember(response: Response) -> Response:
    """Give a new visitor an id, which its forms are bound to."""
    visitor = g.get("visitor")
    if visitor is not None:
        response.headers["Cache-Control"] = "no-store"
        if visitor.is_new:
            give_cookie(response, visitor.ident, "/")
    return response


def give_cookie(response: Response, ident: str, path: str) -> None:
    """Set the visitor's cookie, for as long as the browser is open."""
    name = cookie_name(request.headers.get("Host", ""))
    is_secure = contracts().url.startswith("https://")
    response.set_cookie(name, ident, path=path, httponly=True, samesite="Strict", secure=is_secure)


@pages.app_context_processor
def shared() -> dict[str, Any]:
    """What templates use."""
    known = contracts()
    return {
        "here": here,
        "there": there,
        "with_query": with_query,
        "sandbox": this_sandbox(),
        "base_url": known.url + request.script_root,
        "url_of": lambda name: known.url + ("" if name == "default" else f"/s/{quote(name)}"),
        "version": known.version,
        "nav": [(path, words(path)) for path in NAV],
        "token_of": lambda: known.sessions.token(g.visitor.ident),
        "this_page": request.full_path.rstrip("?"),
        "sandboxes": _sandboxes,
        "curls": lambda: [g.client.curl(each, known.url + request.script_root) for each in g.client.asked],
        "operation_of": known.operation,
    }


def _sandboxes() -> list[str]:
    """The names of the sandboxes that the head offers; none for those who have the key of one."""
    if "clock" not in g:
        return []
    try:
        found = g.client.get(f"{CONTROL}/sandboxes", {"limit": 50}, is_hidden=True)["sandboxes"]
    except Refused:
        return []
    return sorted({each["name"] for each in found} | {"default"}, key=lambda name: (name != "default", name))


# -- actions


def act(method: str, path: str, body: Any = None, *, to: str | None = None) -> Response:
    """Call a control or an operation, and show a page with what was done; the form's `to` unless one is given.

    `to` is a path of the console. Raises Refused where the visitor must give a key first.
    """
    return show_done(change(method, path, body), to)


def change(method: str, path: str, body: Any = None) -> Reply:
    """The answer of a call that changes something. Raises Refused where the visitor must give a key first."""
    reply: Reply = g.client.change(method, path, body)
    if reply.status == 403 and Refused(reply).code == "admin_key_required":
        raise Refused(reply)
    return reply


def show_done(reply: Reply, to: str | None = None) -> Response:
    """Lead to a page that says what became of a request."""
    address = _own(request.form.get("to", "") if to is None else to)
    mark = f"{DONE}={quote(reply.request_id) or 'lost'}"
    return go(address + ("&" if "?" in address else "?") + mark)


def go(address: str) -> Response:
    """Lead to another page, asked for by GET."""
    answer = redirect(address, 303)
    assert isinstance(answer, Response)
    return answer


def plain_text(text: str) -> Response:
    """A text alone, as it is."""
    return Response(text, mimetype="text/plain")


def _done() -> dict[str, Any] | None:
    """The action that led here, as the journal has it: what it was, what became of it, and whether it can be undone."""
    ident = request.args.get(DONE)
    if not ident:
        return None
    if ident == "lost":
        return {
            "is_refused": True,
            "title": "The request",
            "message": "A fault rule dropped the connection.",
            "undo": None,
        }
    try:
        kept = g.client.find(f"{CONTROL}/requests/{quote(ident, safe='')}", is_hidden=True)
    except Refused:
        kept = None
    if kept is None:
        return None
    found = kept["request"]
    operation = contracts().operation(found["operationId"])
    said = found["response"]["body"]
    is_refused = found["status"] is None or found["status"] >= 400
    return {
        "id": ident,
        "is_refused": is_refused,
        "title": f"{found['method']} {found['path']}" if operation is None else operation.raw["summary"],
        "status": found["status"],
        "message": said.get("message") if is_refused and isinstance(said, dict) else None,
        "undo": ident if _has_changed(found) else None,
        "now": said.get("now") if isinstance(said, dict) else None,
        "made": _made(said) if found["status"] == 201 else None,
        "is_control": found["path"].startswith(CONTROL),
    }


def _made(said: Any) -> str | None:
    """The name of the sandbox that an answer has, if it has one."""
    sandbox = said.get("sandbox") if isinstance(said, dict) else None
    return sandbox.get("name") if isinstance(sandbox, dict) else None


def _has_changed(found: dict[str, Any]) -> bool:
    """Whether a request of the journal made a step; those of a clock call are several, which it names none of."""
    if found["step"] is not None or found["status"] is None or found["status"] >= 400:
        return found["step"] is not None
    return bool(g.client.get(f"{CONTROL}/steps", {"cause": found["id"], "limit": 1})["steps"])


_PLAIN: dict[str, tuple[str, str, str | None]] = {
    "/inboxes/clear": ("DELETE", f"{CONTROL}/inbox", "/console/inboxes"),
    "/inboxes/<name>/clear": ("DELETE", f"{CONTROL}/inbox?name={{name}}", None),
    "/requests/clear": ("DELETE", f"{CONTROL}/requests", "/console/requests"),
    "/webhooks/<uuid:ident>/delete": ("DELETE", "/v2/webhooks/{ident}", "/console/webhooks"),
    "/webhooks/deliveries/<uuid:ident>/retry": ("POST", "/v2/webhooks/logs/{ident}/retry", None),
}
"""Actions that are a call without a body: by the address of the form, method, path, and `to` as `act` has it."""


def _add_plain(address: str, method: str, path: str, to: str | None) -> None:
    def view(**values: object) -> Response:
        return act(method, path.format_map({name: quote(str(value), safe="") for name, value in values.items()}), to=to)

    pages.add_url_rule(address, address, view, methods=["POST"])


for _address, _action in _PLAIN.items():
    _add_plain(_address, *_action)


@pages.post("/undo")
def undo() -> Response:
    """Rewind to before a request."""
    return act("POST", f"{CONTROL}/rewind", {"to_request": request.form.get("request", "")})


# -- keys


@pages.post("/key")
def enter() -> Response:
    """Begin a session with the admin key or the sandbox's control key."""
    key = request.form.get("key", "").strip()[:_LONGEST_KEY]
    header = _header_of(key) if key.isascii() and key.isprintable() else None
    if header is None:
        return make_response(_key_page("This key opens neither the server nor this sandbox."), 403)
    return _with_new_id(contracts().sessions.begin(key), header, _own(request.form.get("to", "")))


@pages.post("/leave")
def leave() -> Response:
    """Take the session out of the browser, which gets an id without one. No server has a list to strike it from."""
    header = next(iter(g.visitor.keys), ADMIN_KEY)
    return _with_new_id(new_visitor().ident, header, here("/console/requests"))


def _with_new_id(ident: str, header: str, to: str) -> Response:
    """Lead to a page, and give the visitor another id in place of the one that opens with this header."""
    answer = go(to)
    g.visitor = g.visitor._replace(is_new=False)
    give_cookie(answer, ident, "/" if header == ADMIN_KEY else f"{request.script_root}/")
    return answer


def _header_of(key: str) -> str | None:
    """The header with which a key opens everything, or this sandbox; None where it opens nothing."""
    for header in (ADMIN_KEY, CONTROL_KEY) if key else ():
        try:
            g.client.with_keys({header: key}).get(f"{CONTROL}/clock")
        except Refused:
            continue
        return header
    return None


def _key_page(message: str) -> str:
    return render_template(
        "console/key.html", message=message, to=request.form.get("to") or request.full_path.rstrip("?")
    )


# -- refusals


@pages.errorhandler(Refused)
def refused(error: Refused) -> tuple[str, int]:
    """What the control surface refuses is a page: the question for a key, or what it said."""
    if error.code == "admin_key_required":
        return _key_page(error.message), 403
    is_missing = error.code == "sandbox_not_found"
    return render_template("console/refused.html", error=error, is_missing=is_missing), error.status


@pages.app_errorhandler(HTTPException)
def failed(error: HTTPException) -> tuple[str, int]:
    """A path or a form that is none of the console."""
    if "visitor" not in g:
        _know_visitor()
    if error.code == 404:
        error.description = "There is no such page."
    return render_template("console/failed.html", error=error), error.code or 500
