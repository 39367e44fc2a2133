"""Who may do what: ready credentials, API keys with their scopes, tokens to make; magic values and assumptions."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from flask import g, render_template, request

from ..contract.document import Document
from ..server.request import CONTROL
from .client import Refused
from .forms import given
from .shell import change, contracts, load_head, pages, with_query

_LISTED, _ASSUMED = 100, 20
_KINDS = ("contradiction", "limitation", "operation", "property")


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
    reply = change("POST", f"{CONTROL}/tokens", body | given("merchant_id", numbers=("expires_in",)))
    if reply.is_refused:
        return _page(None, Refused(reply).message), Refused(reply).status
    return _page(reply.json), reply.status


def _page(made: Any, problem: str | None = None) -> str:
    load_head()
    keys = g.client.get("/api-keys", {"limit": _LISTED})
    assumptions = g.client.get(f"{CONTROL}/assumptions")
    api = contracts().api
    chosen = [each for each in assumptions["assumptions"] if _matches(each)]
    page = min(max(1, request.args.get("page", 1, type=int)), max(1, -(-len(chosen) // _ASSUMED)))
    return render_template(
        "console/keys.html",
        made=made,
        problem=problem,
        sent=request.form.getlist("scopes") if request.method == "POST" else ["*"],
        ready=g.client.credentials,
        keys=[(each, list(_allowed(api, each["scopes"]))) for each in keys["api_keys"]],
        more=keys["pagination"]["total"] - len(keys["api_keys"]),
        scopes=_by_resource(api),
        magic=_magic(api),
        assumptions=assumptions,
        chosen=chosen[(page - 1) * _ASSUMED : page * _ASSUMED],
        found=len(chosen),
        newer=with_query(page=page - 1) if page > 1 else None,
        older=with_query(page=page + 1) if page * _ASSUMED < len(chosen) else None,
        kinds=_KINDS,
        operations=list(api.operations),
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


def _magic(api: Document) -> list[tuple[str, str]]:
    """The magic words of e-mail addresses, and what each does to an order."""
    email = api.schema_at(api.schema("OrderCustomerInput"), ["email"])
    return list(email.get("x-magic-words", {}).items())


def _matches(assumption: dict[str, Any]) -> bool:
    kind, operation, text = (request.args.get(name, "").strip() for name in ("kind", "operation", "q"))
    return (
        (not kind or assumption["kind"] == kind)
        and (not operation or operation in assumption["operations"])
        and (not text or text.lower() in f"{assumption['id']} {assumption['text']}".lower())
    )
