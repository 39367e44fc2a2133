"""Who may do what: ready credentials, API keys with their scopes, and tokens to make."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from flask import g, render_template, request

from ..contract.document import Document
from ..server.request import CONTROL
from .client import Refused
from .forms import given
from .shell import load_head
from .site import contracts, pages

_LISTED = 100


class Allowed(NamedTuple):
    """What scopes allow on one kind of resource: `access` is `read`, `write` or both."""

    resource: str
    access: str
    writes: bool


@pages.get("/keys")
def list_keys() -> str:
    """Keys and scopes."""
    return _page(None)


@pages.post("/keys/token")
def make_token() -> tuple[str, int]:
    """Make a token. The page of the answer alone shows it: the journal does not keep it."""
    body: dict[str, Any] = {"scopes": request.form.getlist("scopes")}
    if "*" in body["scopes"]:
        body["scopes"] = ["*"]
    reply = g.client.change("POST", f"{CONTROL}/tokens", body | given("merchant_id", numbers=("expires_in",)))
    if reply.is_refused:
        return _page(None, Refused(reply).message), Refused(reply).status
    return _page(reply.json), reply.status


def _page(made: Any, problem: str | None = None) -> str:
    load_head()
    keys = g.client.get("/api-keys", {"limit": _LISTED})
    api = contracts().api
    return render_template(
        "console/keys.html",
        made=made,
        problem=problem,
        sent=request.form.getlist("scopes") if request.method == "POST" else ["*"],
        ready=g.client.credentials,
        keys=[(each, list(_allowed(api, each["scopes"]))) for each in keys["api_keys"]],
        more=keys["pagination"]["total"] - len(keys["api_keys"]),
        scopes=_by_resource(api),
    )


def _by_resource(api: Document) -> dict[str, list[dict[str, Any]]]:
    """The scopes of each kind of resource."""
    found: dict[str, list[dict[str, Any]]] = {}
    for scope in api.scopes:
        found.setdefault(scope["resource"], []).append(scope)
    return found


def _allowed(api: Document, scopes: Iterable[str]) -> Iterable[Allowed]:
    names = set(scopes)
    for resource, known in _by_resource(api).items():
        access = [scope["access"] for scope in known if scope["name"] in names]
        if access:
            yield Allowed(resource, " and ".join(access), "write" in access)
