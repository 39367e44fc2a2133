"""Who may do what: ready credentials, API keys with their scopes, and tokens to make."""

from typing import Any

from flask import g, render_template, request

from ..contract.source import JsonObject
from ..server.request import CONTROL
from .client import Refused
from .forms import members
from .shell import load_head
from .site import pages

_LISTED = 100


@pages.get("/keys")
def list_keys() -> str:
    """Keys and scopes."""
    return _page(None)


@pages.post("/keys/token")
def make_token() -> tuple[str, int]:
    """Make a token. The page of the answer alone shows it: the journal does not keep it."""
    body: JsonObject = {"scopes": request.form.getlist("scopes")}
    if "*" in body["scopes"]:
        body["scopes"] = ["*"]
    reply = g.client.change("POST", f"{CONTROL}/tokens", members("issueToken") | body)
    if reply.is_refused:
        return _page(None, Refused(reply).message), Refused(reply).status
    return _page(reply.json), reply.status


def _page(made: Any, problem: str | None = None) -> str:
    load_head()
    return render_template(
        "console/keys.html",
        made=made,
        problem=problem,
        ready=g.client.credentials,
        found=g.client.get("/api-keys", {"limit": _LISTED}),
    )
