"""Explains a refusal: what the contract, the rule or the state says, and the nearest request that
would succeed now.
"""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import orjson

from ...contract.pointers import below, located, within
from ...core.log import log
from ...core.problem import Refusal
from ...core.record import ABSENT, Body, object_in, without
from ...core.text import shortened
from ...engine.kept import Trace
from ...engine.sandbox import Sandbox
from ..curl import command
from ..journal.entries import brief, is_cut, shown_body
from ..layers.routing import Application, Routing
from ..layers.validation import WIDEST
from ..request import CONTROL
from ..server import Server
from .attempt import DROPPED_HEADERS, KEPT_HEADERS, Attempt, changes, is_small
from .mending import Mender, steps
from .repairs import nearest
from .states import state_behind

AUTH, CONTRACT, RULE, FAULT = "auth", "contract", "rule", "fault"
"""Kinds of refusals. `x-rules` of the contract's `ErrorCode` has kind and rule of each code."""

_SETTINGS = {
    "unknown_field": (
        "An overlay (--overlay) adds a field; --unknown-fields ignore drops those that are unknown."
    ),
    "invalid_document": (
        "With --check-digits off, or check_digits of the sandbox's settings, any digits are"
        " accepted."
    ),
}
"""By the code of a violation, which settings would accept the request.

Answers name none: clients cannot set them.
"""
_UNKNOWN = {"kind": RULE, "text": "The answer says what is asked for.", "has_nearest": False}
_DETAILS = {
    "type": "array",
    "maxItems": WIDEST,
    "items": {"$ref": "#/components/schemas/ErrorDetail"},
}
_LONGEST_EXCERPT = 600  # characters


class Explainer:
    """One per server. It makes one explanation at a time; other requests are served in between."""

    def __init__(self, mender: Mender, app: Callable[[], Application]) -> None:
        """`app` returns the application; it is complete when the first request has come."""
        self._mender, self._app, self._turn = mender, app, asyncio.Lock()

    async def explain(self, server: Server, sandbox: Sandbox, trace: Trace) -> Body | None:
        """The explanation of a refusal in the journal; None for a request that was accepted."""
        if trace.status < 400:
            return None
        async with self._turn:
            found = await self.explain_now(server, sandbox, trace)
        await asyncio.sleep(0)  # to show a large body takes a turn of its own
        return found

    async def explain_now(self, server: Server, sandbox: Sandbox, trace: Trace) -> Body:
        """The explanation of a refusal, while no other one is made.

        Of a request to the control surface it has the rule alone.
        """
        code, answer = trace.code or "", object_in(trace.answer)
        rule = self._mender.rules.get(code, _UNKNOWN)
        text = str(answer.get("message") or f"The request was refused with {code}. {rule['text']}")
        found: Body = dict.fromkeys(("summary", "kind", "contract", "rule", "state", "nearest"))
        found |= {"summary": text, "kind": rule["kind"]}
        if not trace.path.startswith(CONTROL):
            details = answer.get("details", [])
            if not self._mender.accepts(_DETAILS, details):  # they are of a file
                details = []
            for violation, advice in _SETTINGS.items():
                if any(each["code"] == violation for each in details):
                    found["summary"] += f" {advice}"
            layers = self._app().middleware_stack or ()
            (routing,) = [layer for layer in layers if isinstance(layer, Routing)]
            refusal = Refusal(text, code=code, details=details)
            attempt = Attempt(self._mender, routing, server, sandbox, trace, refusal=refusal)
            await _look_into(attempt, found)
        if found["kind"] != CONTRACT:
            found["rule"] = {"name": code, "text": rule["text"]}
        return found


async def _look_into(s: Attempt, found: Body) -> None:
    """Find kind, place, state and nearest request of a refused request to the API."""
    refusal, begun, is_found, state = s.refusal, deepcopy(s.request), False, None
    if s.trace.status != 401:  # which is about the caller's key
        state = state_behind(s, refusal.code)
    if _may_be_repaired(s):
        try:
            is_found = await nearest(s)
        except Exception:  # the rest of the explanation is shown all the same
            log.exception("defect while looking for the nearest of a %s", s.refusal.code)
    if not is_found:
        state = state or state_behind(s, s.refusal.code)
    is_same = is_found and s.request == begun and not s.before
    found["kind"] = _kind(found["kind"], s.trace, is_same=is_same)
    if found["kind"] != FAULT:
        found |= {"contract": _excerpt(s, refusal), "state": state}
    if is_found:
        found["nearest"] = _shown(s, found)


def _may_be_repaired(s: Attempt) -> bool:
    """Whether a nearest request is looked for: one whose target is stored whole."""
    if is_cut(s.trace) or not is_small(s.trace.body or b""):
        return False
    rule = s.mender.rules.get(s.refusal.code, _UNKNOWN)
    return bool(rule.get("has_nearest", True) or s.trace.simulated)


def _kind(usual: str, trace: Trace, *, is_same: bool) -> str:
    """The kind of a refusal. One that a fault rule or a header caused is a fault, whatever its code
    is: then the same request succeeds.

    A record that the ready token finds and an API key did not is hidden from that key.
    """
    has_key = trace.caller is not None and trace.caller.kind == "private_key"
    if is_same and has_key and trace.code == "not_found":
        return AUTH
    if is_same and trace.simulated not in (None, "delay"):
        return FAULT
    return AUTH if trace.status == 401 else usual


def _shown(s: Attempt, found: Body) -> Body | None:
    """The changes and the commands of the nearest request; None where a shell cannot take
    one of them.
    """
    base_url, changed = s.server.url_of(s.sandbox), list[Body]()
    commands, calls = [], []
    for call, why in (*s.before, (s.question(s.request), "")):
        commands.append(command(*call[:5], base_url=base_url, has_admin_key=False) or "")
        headers = without({**call.headers}, "authorization")
        shown = call._asdict() | {"headers": headers, "body": shown_body(call.body)}
        calls.append(without(shown, "is_internal"))
        if why:
            text = f"{call.method} {call.path} {call.body.decode()}".rstrip()
            changed.append(_changed("before", ABSENT, text, why))
    if found["kind"] == AUTH:
        sender = None if s.trace.caller is None else s.trace.caller.kind
        why = "It is valid and has every scope."
        changed.append(_changed("header.Authorization", sender, "Bearer <the ready token>", why))
    for place, given, made in changes(s.sent([*KEPT_HEADERS, *DROPPED_HEADERS]), s.request):
        why = s.reasons.get(place, str(found["summary"]))
        changed.append(_changed(place, given, made, why))
    if not all(commands):
        return None
    return {"changes": changed, "calls": calls, "curl": " &&\n".join(commands)}


def _changed(where: str, given: Any, made: Any, why: str) -> Body:
    """A change as it is shown."""
    return {"where": where, "from": _value(given), "to": _value(made), "why": why}


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return None if value is ABSENT else brief(value)


def _excerpt(s: Attempt, refusal: Refusal) -> Body | None:
    """The pointer and excerpt of what a refusal of the contract or of the credential is about; None
    without one.
    """
    pointer = _pointer(s, refusal)
    if pointer is None:
        return None
    text = orjson.dumps(located(s.document, pointer)[1], option=orjson.OPT_NON_STR_KEYS).decode()
    return {"pointer": pointer, "excerpt": shortened(text, _LONGEST_EXCERPT)}


def _pointer(s: Attempt, refusal: Refusal) -> str | None:
    """Where the contract has what a refusal is about."""
    document, operation = s.document, s.operations.get(s.called_method)
    if operation is None:
        return None
    part = s.mender.rules.get(refusal.code, {}).get("part")
    if part in operation.raw:
        return below("#", *operation.at, part)
    if part in document.raw:
        return below("#", part)
    for each in refusal.details[:1]:
        field = each["field"]
        if each["in"] == "body" and operation.body is not None:
            path = steps("" if field == "body" else field)
            pointer = within(document, below("#", *operation.body_at), path)[0]
            return str(located(document, pointer)[1].get("$ref", pointer))
        for parameter in operation.parameters:
            if parameter.name.lower() == field.lower():
                return below("#", *parameter.at, "schema")
    return None
