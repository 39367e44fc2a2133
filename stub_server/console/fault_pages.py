"""Fault rules: which there are and what they did, ready ones by a click, and a form by what
somebody wants to see.
"""

from collections.abc import Mapping

from flask import Response, g, render_template, request

from ..contract.source import JsonObject
from ..server.request import CONTROL
from .actions import show_done
from .client import Refused
from .filters import read_json
from .shell import load_head
from .site import pages

_HERE, _RULES = "/console/faults", f"{CONTROL}/faults"
_LISTED = 100  # rules, the most that a sandbox has
_OF_WEBHOOKS: JsonObject = {"event": "*"}
_INTENTS: dict[str, tuple[str, JsonObject, JsonObject]] = {
    "slow": ("Requests are slow", {}, {"delay_ms": {"min": 800, "max": 3_000}}),
    "fails": ("Requests fail", {}, {"status": 503}),
    "lost": ("The change is made, the answer is lost", {}, {"drop_connection": "after"}),
    "late": ("Webhooks arrive late", _OF_WEBHOOKS, {"delay_ms": 5_000}),
    "twice": ("Webhooks arrive twice", _OF_WEBHOOKS, {"webhook_duplicate": True}),
    "forged": (
        "Webhooks are signed with a wrong key",
        _OF_WEBHOOKS,
        {"webhook_bad_signature": True},
    ),
    "dropped": ("Webhooks are lost, and retried", _OF_WEBHOOKS, {"webhook_drop": True}),
}
"""What a rule of the form is for, and what it matches and does unless the form says more."""
_COUNTED = 20  # rules of which it is said how many requests they would have met


@pages.get("/faults")
def list_faults() -> str:
    """The rules."""
    return _page({})


@pages.post("/faults/make")
def make_fault() -> Response | tuple[str, int]:
    """Add a rule; a refusal shows the form again."""
    reply = g.client.change("POST", _RULES, _asked())
    if reply.is_refused:
        return _page(request.form, Refused(reply).message), 422
    return show_done(reply, _HERE)


def _page(sent: Mapping[str, str], problem: str | None = None) -> str:
    """`sent` are the values of a form that was refused."""
    load_head()
    found = g.client.get(_RULES, {"limit": _LISTED})["faults"]
    return render_template(
        "console/faults.html",
        rules=found,
        matches=[_count(each["match"]) for each in found[:_COUNTED]],
        intents=_INTENTS,
        sent=sent,
        problem=problem,
    )


def _asked() -> JsonObject:
    """The rule of the form, whose fields are called `when.times`."""
    _, match, then = _INTENTS.get(request.form.get("intent", ""), _INTENTS["fails"])
    rule: JsonObject = {"match": {**match}, "when": {}, "then": {**then}}
    for field, text in request.form.items():
        part, _, member = field.partition(".")
        if part in rule and text.strip():
            rule[part][member] = read_json(text.strip())
    name = request.form.get("name", "").strip()
    return rule | ({"name": name} if name else {})


def _count(match: JsonObject) -> int | None:
    """How many requests of the journal a rule about operation, method and path applies to; None
    where that cannot be told.
    """
    if match.keys() - {"operationId", "method", "path"}:
        return None
    found = g.client.control("requests", {**match, "limit": 1})
    return int(found["pagination"]["total"])
