"""Fault rules: which there are and what they did, ready ones by a click, and a form by what
somebody wants to see.
"""

from collections.abc import Mapping
from typing import NamedTuple

from flask import Response, g, render_template, request

from ..contract.source import JsonObject
from ..core.clock import iso, parse_iso
from ..server.request import CONTROL
from .actions import show_done
from .client import Refused
from .filters import read_json
from .shell import load_head
from .site import pages

_HERE, _RULES = "/console/faults", f"{CONTROL}/faults"
_LISTED = 100  # rules, the most that a sandbox has
_INTENTS: dict[str, tuple[str, JsonObject]] = {
    "slow": ("Requests are slow", {"delay_ms": {"min": 800, "max": 3_000}}),
    "fails": ("Requests fail", {"status": 503}),
    "lost": ("The change is made, the answer is lost", {"drop_connection": "after"}),
    "late": ("Webhooks arrive late", {"delay_ms": 5_000}),
    "twice": ("Webhooks arrive twice", {"webhook_duplicate": True}),
    "forged": ("Webhooks are signed with a wrong key", {"webhook_bad_signature": True}),
    "dropped": ("Webhooks are lost, and retried", {"webhook_drop": True}),
}
"""What a rule of the form is for, and what it does unless the form says more."""
_OF_WEBHOOKS = ("late", "twice", "forged", "dropped")
_NUMBERS = ("after", "times", "share", "wait", "status")
_COUNTED = 20  # rules of which it is said how many requests they would have met


class Rule(NamedTuple):
    """A rule: how often it acts yet and when it ends, None where it has no such limit, and whether
    it is over.

    `matches` is how many requests of the journal it applies to, None where that cannot be told.
    """

    raw: JsonObject
    more: int | None
    ends: str | None
    is_over: bool
    matches: int | None


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
        rules=[_rule(each, place) for place, each in enumerate(found)],
        intents=_INTENTS,
        sent=sent,
        problem=problem,
    )


# -- the form


def _asked() -> JsonObject:
    """The rule of the form."""
    filled = {name: text.strip() for name, text in request.form.items() if text.strip()}
    sent = {name: read_json(text) if name in _NUMBERS else text for name, text in filled.items()}
    intent = sent.get("intent", "")
    match = _given(sent, "operationId")
    if intent in _OF_WEBHOOKS:
        match = {"event": sent.get("event", "*")}
    when = _given(sent, "after", "times")
    if "share" in sent:
        share = sent["share"]
        when["probability"] = share if isinstance(share, str) else share / 100
    _, then = _INTENTS.get(intent, _INTENTS["fails"])
    if "status" in then:
        then = then | _given(sent, "status", "code")
    if "delay_ms" in then and "wait" in sent:
        then = {"delay_ms": sent["wait"]}
    return _given(sent, "name") | {"match": match, "when": when, "then": then}


def _given(sent: JsonObject, *names: str) -> JsonObject:
    """The members of a rule that the form has."""
    return {name: sent[name] for name in names if name in sent}


def _rule(raw: JsonObject, place: int) -> Rule:
    when, more, ends = raw["when"], None, None
    if "times" in when:
        more = max(0, when["times"] - raw["hits"])
    if "for_seconds" in when:
        ends = iso(parse_iso(raw["created_at"]) + 1000 * when["for_seconds"])
    is_over = more == 0 or (ends is not None and ends <= g.clock["now"])
    return Rule(raw, more, ends, is_over, _count(raw["match"]) if place < _COUNTED else None)


def _count(match: JsonObject) -> int | None:
    """How many requests of the journal a rule about operation, method and path applies to."""
    if match.keys() - {"operationId", "method", "path"}:
        return None
    found = g.client.control("requests", {**match, "limit": 1})
    return int(found["pagination"]["total"])
