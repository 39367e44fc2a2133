"""Fault rules: which there are and what they did, ready ones by a click, and a form by what somebody wants to see."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from flask import Response, g, render_template, request

from ..core.clock import iso, parse_iso
from ..server.layers.inside import Reply
from ..server.request import CONTROL
from .actions import act, show_done
from .client import Refused
from .filters import in_one_line, plain, read_json, words
from .shell import load_head
from .site import contracts, pages

_HERE, _RULES = "/console/faults", f"{CONTROL}/faults"
_LISTED = 100  # rules, the most that a sandbox has
_EXAMPLE = {
    "name": "checkout is flaky",
    "match": {"operationId": "createPixOrder", "body": {"$.customer.email": "*@example.com"}},
    "when": {"probability": 0.2},
    "then": {"status": 503, "headers": {"Retry-After": "2"}},
}
_INTENTS = {
    "slow": "Requests are slow",
    "fails": "Requests fail",
    "lost": "The change is made, the answer is lost",
    "late": "Webhooks arrive late",
    "twice": "Webhooks arrive twice",
    "forged": "Webhooks are signed with a wrong key",
    "dropped": "Webhooks are lost, and retried",
}
"""What a rule of the form is for."""
_WEBHOOKS: dict[str, dict[str, Any]] = {
    "twice": {"webhook_duplicate": True},
    "forged": {"webhook_bad_signature": True},
    "dropped": {"webhook_drop": True},
}
_WAITS = {"slow": {"min": 800, "max": 3_000}, "late": 5_000}
"""Milliseconds, unless the form says how many."""
_COUNTED = 20  # rules of which it is said how many requests they would have met


class Rule(NamedTuple):
    """A rule in words; `left` says how long it goes on, `is_over` that it does not.

    `matches` is how many requests of the journal it applies to, None where that cannot be told.
    """

    raw: dict[str, Any]
    match: list[str]
    when: list[str]
    then: list[str]
    left: list[str]
    is_over: bool
    matches: int | None


@pages.get("/faults")
def list_faults() -> str:
    """The rules."""
    return _page({})


@pages.post("/faults/preset")
def make_preset() -> Response:
    """Add a ready rule."""
    return act("POST", _RULES, {"preset": request.form.get("preset", "")}, to=_HERE)


@pages.post("/faults/make")
def make_fault() -> Response | tuple[str, int]:
    """Add a rule; a refusal shows the form again."""
    return _made(g.client.change("POST", _RULES, _asked()))


@pages.post("/faults/make-json")
def make_fault_of_json() -> Response | tuple[str, int]:
    """Add a rule that is written as JSON; a refusal shows the form again."""
    return _made(g.client.write("POST", _RULES, request.form.get("body", "")))


@pages.post("/faults/switch")
def switch_fault() -> Response:
    """Switch a rule on or off."""
    return act("PATCH", _path(), {"enabled": request.form.get("enabled") == "true"}, to=_HERE)


@pages.post("/faults/remove")
def remove_fault() -> Response:
    """Remove a rule, or all."""
    return act("DELETE", _RULES if request.form.get("every") else _path())


def _path() -> str:
    return f"{_RULES}/{quote(request.form.get('fault', '-'), safe='')}"


def _made(reply: Reply) -> Response | tuple[str, int]:
    if reply.is_refused:
        return _page(request.form, Refused(reply).message), 422
    return show_done(reply, _HERE)


def _page(sent: Mapping[str, str], problem: str | None = None) -> str:
    """`sent` are the values of a form that was refused."""
    load_head()
    found = g.client.get(_RULES, {"limit": _LISTED})["faults"]
    preset = contracts().control.raw["components"]["schemas"]["FaultPreset"]
    return render_template(
        "console/faults.html",
        rules=[_rule(each, place) for place, each in enumerate(found)],
        presets=preset["x-presets"],
        names=preset["enum"],
        intents=_INTENTS,
        operations=list(contracts().api.operations),
        events=sorted(contracts().api.events),
        sent=sent,
        problem=problem,
        example=orjson.dumps(_EXAMPLE, option=orjson.OPT_INDENT_2).decode(),
    )


# -- the form


def _asked() -> dict[str, Any]:
    """The rule of the form. What is no number where one is needed goes as text, for the control to refuse."""
    intent = request.form.get("intent", "")
    sent = {name: text.strip() for name, text in request.form.items()}
    is_of_webhooks = intent in _WEBHOOKS or intent == "late"
    match = {name: sent[name] for name in ("event" if is_of_webhooks else "operationId",) if sent.get(name)}
    if is_of_webhooks and not match:
        match = {"event": "*"}
    body = {"match": match, "when": _often(sent), "then": _consequence(intent, sent)}
    named = {"name": sent["name"]} if sent.get("name") else {}
    return named | {part: content for part, content in body.items() if content}


def _often(sent: Mapping[str, str]) -> dict[str, Any]:
    """How often the rule of the form acts: a share in percent, and how many times."""
    share, times = sent.get("share"), sent.get("times")
    found: dict[str, Any] = {}
    if share:
        number = _value(share)
        found["probability"] = number / 100 if isinstance(number, int | float) else number
    if times:
        found["times"] = _value(times)
    return found


def _consequence(intent: str, sent: Mapping[str, str]) -> dict[str, Any]:
    """What the rule of the form does."""
    if intent in _WEBHOOKS:
        return _WEBHOOKS[intent]
    if intent == "lost":
        return {"drop_connection": "after"}
    if intent in _WAITS:
        ends = [_value(sent[name]) for name in ("least", "most") if sent.get(name)]
        if not ends:
            return {"delay_ms": _WAITS[intent]}
        return {"delay_ms": {"min": ends[0], "max": ends[-1]}}
    coded = {"code": sent["code"]} if sent.get("code") else {}
    return {"status": _value(sent.get("status") or "503")} | coded


def _value(text: str) -> Any:
    found = read_json(text)
    return found if isinstance(found, int | float) else text


# -- rules in words


def _rule(raw: dict[str, Any], place: int) -> Rule:
    when, left, is_over = raw["when"], list[str](), False
    if "times" in when:
        more = when["times"] - raw["hits"]
        left.append(f"{max(0, more)} of {when['times']} times")
        is_over = more <= 0
    if "for_seconds" in when:
        ends = iso(parse_iso(raw["created_at"]) + 1000 * when["for_seconds"])
        away = parse_iso(ends) - parse_iso(g.clock["now"])
        left.append(ends if away > 0 else "its time is over")
        is_over = is_over or away <= 0
    return Rule(
        raw=raw,
        match=list(_match(raw["match"])),
        when=list(_when(when)),
        then=list(_then(raw["then"])),
        left=left,
        is_over=is_over,
        matches=_count(raw["match"]) if place < _COUNTED else None,
    )


def _count(match: dict[str, Any]) -> int | None:
    """How many requests of the journal a rule about operation, method and path applies to."""
    if match.keys() - {"operationId", "method", "path"}:
        return None
    found = g.client.get(f"{CONTROL}/requests", {**match, "limit": 1}, is_hidden=True)
    return int(found["pagination"]["total"])


def _match(match: dict[str, Any]) -> Iterator[str]:
    for name, content in match.items():
        if isinstance(content, dict):
            yield from (f"{member}: {in_one_line(value)}" for member, value in content.items())
        else:
            yield content if name in ("operationId", "method", "path") else f"{name} {content}"


def _when(when: dict[str, Any]) -> Iterator[str]:
    texts = {
        "probability": lambda number: f"{100 * number:g} % of them",
        "every": lambda number: "each one" if number == 1 else f"one in {number}",
        "after": lambda number: f"not the first {number}",
        "times": lambda number: f"{number} times at most",
        "for_seconds": lambda number: f"for {number:,} s",
    }
    yield from (texts[name](content) if name in texts else f"{name} {plain(content)}" for name, content in when.items())


def _then(then: dict[str, Any]) -> Iterator[str]:
    for name, content in then.items():
        if name == "headers":
            yield from (f"{header}: {value}" for header, value in content.items())
        elif name == "delay_ms":
            span = f"{content['min']:,} to {content['max']:,}" if isinstance(content, dict) else f"{content:,}"
            yield f"waits {span} ms"
        elif name == "truncate_body":
            yield f"sends {100 * content:g} % of the body"
        elif content is True:
            yield words(name).lower()
        elif content is not False:
            yield f"{words(name).lower()} {content}"
