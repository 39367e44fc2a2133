"""Sessions: begun with the admin key or the control key of the sandbox, and ended by
the visitor.
"""

from flask import Response, g, make_response, request

from .actions import go
from .addresses import here, own
from .client import Refused
from .sessions import ADMIN_KEY, CONTROL_KEY, new_visitor
from .shell import give_cookie, key_page
from .site import contracts, pages

_LONGEST = 1_000  # characters of a key


@pages.post("/key")
def enter() -> Response:
    """Begin a session with the admin key or the sandbox's control key."""
    key = request.form.get("key", "").strip()[:_LONGEST]
    header = _header_of(key) if key.isascii() and key.isprintable() else None
    if header is None:
        return make_response(key_page("This key opens neither the server nor this sandbox."), 403)
    return _with_new_id(contracts().sessions.begin(key), header, own(request.form.get("back", "")))


@pages.post("/leave")
def leave() -> Response:
    """Take the session out of the browser, which gets an id without one.

    No server has a list to strike it from.
    """
    header = next(iter(g.visitor.keys), ADMIN_KEY)
    return _with_new_id(new_visitor().ident, header, here("/console/requests"))


def _with_new_id(ident: str, header: str, to: str) -> Response:
    """Lead to a page, and give the visitor another id in place of the one that opens with
    this header.
    """
    answer = go(to)
    g.visitor = g.visitor._replace(is_new=False)
    give_cookie(answer, ident, "/" if header == ADMIN_KEY else f"{request.script_root}/")
    return answer


def _header_of(key: str) -> str | None:
    """The header with which a key opens everything, or this sandbox; None where it opens nothing.

    Raises Refused after too many wrong keys.
    """
    limited: Refused | None = None
    for header in (ADMIN_KEY, CONTROL_KEY) if key else ():
        try:
            g.client.with_keys({header: key}).control("clock")
        except Refused as refused:
            if refused.status == 429:
                limited = refused
            continue
        return header
    if limited is not None:
        raise limited
    return None
