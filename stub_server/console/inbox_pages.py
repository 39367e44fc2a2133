"""Inboxes: what webhooks delivered to addresses of this sandbox, and what they answer."""

from urllib.parse import quote

from flask import Response, g, render_template, request

from ..server.request import CONTROL
from .actions import go, show_done
from .addresses import here
from .forms import listed, members
from .site import pages

_LISTED = 25
_INBOX = f"{CONTROL}/inbox"


@pages.get("/inboxes")
def inboxes() -> str:
    """The inboxes, the one used last first."""
    found = g.client.get(_INBOX, {"limit": 100, "page": request.args.get("page", "")})
    return render_template("console/inboxes.html", **found)


@pages.get("/inboxes/open")
def open_inbox() -> Response:
    """Lead to the inbox of a name, which need not be in use."""
    name = request.args.get("name", "").strip()
    return go(here(f"/console/inboxes/{name[:63]}" if name else "/console/inboxes"))


@pages.get("/inboxes/<name>")
def one_inbox(name: str) -> str:
    """One inbox: what arrived, and what it answers."""
    found = listed(_path(name), "listInboxMessages", _LISTED, messages=[])
    every = g.client.get(_INBOX, {"limit": 100})["inboxes"]
    return render_template(
        "console/inbox.html",
        name=name,
        box=next((box for box in every if box["name"] == name), None),
        webhooks=g.client.get("/v2/webhooks", {"limit": 100})["webhooks"],
        **found,
    )


@pages.get("/inboxes/<name>/<int:number>")
def message(name: str, number: int) -> str:
    """One message, whole."""
    return render_template(
        "console/message.html", message=g.client.get(f"{_path(name)}/{number}")["message"]
    )


@pages.post("/inboxes/<name>/answer")
def set_answer(name: str) -> Response:
    """Say what an inbox answers from now on."""
    body = members("setInboxAnswer")
    retry_after = request.form.get("retry_after", "").strip()
    if retry_after:
        body["headers"] = [{"name": "Retry-After", "value": retry_after}]
    return show_done(g.client.change("PUT", f"{_path(name)}/answer", body))


def _path(name: str) -> str:
    return f"{_INBOX}/{quote(name, safe='')}"
