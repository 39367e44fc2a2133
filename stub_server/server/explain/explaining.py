"""Explains a refusal: what the contract, the rule or the state says, and the nearest request that
would succeed now.
"""

import asyncio
from collections.abc import Collection
from copy import deepcopy
from typing import Any
from urllib.parse import parse_qs

import orjson

from ...contract.pointers import below, located, within
from ...contract.secrets import LEFT_OUT
from ...contract.source import Json
from ...core.log import log
from ...core.problem import Refusal
from ...core.record import ABSENT, Body, is_deeper_than, may_have_more_values, object_in
from ...core.text import shortened
from ...engine.kept import Trace
from ...engine.sandbox import Sandbox
from ...engine.tables.store import Merchant
from ..curl import command
from ..journal.entries import body_of, brief, is_cut
from ..layers.validation import DEEPEST, WIDEST
from ..request import CONTROL
from ..server import Server
from .attempt import TABLES, Attempt, changes
from .mending import Mender, steps
from .rehearsal import Rehearsal
from .repairs import nearest
from .states import state_behind

AUTH, CONTRACT, RULE, FAULT = "auth", "contract", "rule", "fault"
"""Kinds of refusals. `x-rules` of the contract's `ErrorCode` has kind and rule of each code."""

_KEPT_HEADERS = ("Content-Type", "Idempotency-Key")
_DROPPED_HEADERS = {
    "Prefer": "It asks the sandbox to fail.",
    "X-Sandbox-Simulate": "It asks the sandbox to fail.",
    "X-Sandbox-Delay": "It asks the sandbox to wait.",
    "X-Sandbox-As-Of": "It asks for an earlier state.",
}
"""Headers that the nearest request leaves out, and why."""
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
LARGEST = 65_536  # bytes of a body that is mended
_DETAILS = {
    "type": "array",
    "maxItems": WIDEST,
    "items": {"$ref": "#/components/schemas/ErrorDetail"},
}
_LONGEST_EXCERPT = 600  # characters


class Explainer:
    """One per server. It makes one explanation at a time; other requests are served in between."""

    def __init__(self, mender: Mender, rehearsal: Rehearsal) -> None:
        self._mender, self._rehearsal, self._turn = mender, rehearsal, asyncio.Lock()
        self._rules = mender.document.schema("ErrorCode").get("x-rules", {})

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
        rule = self._rules.get(code, _UNKNOWN)
        text = str(answer.get("message") or f"The request was refused with {code}. {rule['text']}")
        found: Body = dict.fromkeys(("summary", "kind", "contract", "rule", "state", "nearest"))
        found |= {"summary": text, "kind": rule["kind"]}
        if not trace.path.startswith(CONTROL):
            details = answer.get("details", [])
            if not self._mender.accepts(_DETAILS, details):  # they are of a file
                details = []
            refusal = Refusal(text, code=code, details=details)
            s = self._attempt(server, sandbox, trace, refusal)
            await self._look_into(server, sandbox, trace, s, found)
        if found["kind"] != CONTRACT:
            found["rule"] = {"name": code, "text": rule["text"]}
        return found

    def _attempt(self, server: Server, sandbox: Sandbox, trace: Trace, refusal: Refusal) -> Attempt:
        """The request as it was sent, with the ready token of the caller's merchant, in a copy of
        the sandbox.
        """
        request = _sent(trace, _KEPT_HEADERS)
        reasons = {f"header.{name}": why for name, why in _DROPPED_HEADERS.items()}
        reasons["body"] = "No body is known that can be mended. This is the contract's example."
        _, values = self._mender.document.routed(trace.path)
        merchant = _merchant(sandbox, trace, values)
        return Attempt(
            self._mender,
            self._rehearsal,
            self._rehearsal.copy_of(sandbox),
            merchant.id,
            server.ready_token(sandbox, merchant),
            request,
            refusal,
            self._rules,
            reasons,
        )

    async def _look_into(
        self, server: Server, sandbox: Sandbox, trace: Trace, s: Attempt, found: Body
    ) -> None:
        """Find kind, place, state and nearest request of a refused request to the API."""
        refusal, begun, is_found, state = s.refusal, deepcopy(s.request), False, None
        rule = self._rules.get(refusal.code, _UNKNOWN)
        codes = {each["code"] for each in refusal.details}
        for code, advice in _SETTINGS.items():
            if code in codes:
                found["summary"] += f" {advice}"
        if trace.status != 401:  # which is about the caller's key
            state = state_behind(s, refusal.code)
        if _may_be_repaired(trace, rule):
            is_found = await _has_nearest(s)
        if not is_found and state is None:
            state = state_behind(s, s.refusal.code)
        is_same = is_found and s.request == begun and not s.before
        found["kind"] = _kind(found["kind"], trace, is_same=is_same)
        if found["kind"] != FAULT:
            found |= {"contract": _excerpt(s, refusal), "state": state}
        if is_found:
            found["nearest"] = _shown(server.url_of(sandbox), trace, s, found)


async def _has_nearest(s: Attempt) -> bool:
    """Whether repairs make the request succeed. After a defect the rest of the explanation is
    shown all the same.
    """
    try:
        return await nearest(s)
    except Exception:
        log.exception("defect while looking for the nearest of a %s", s.refusal.code)
        return False


def _sent(trace: Trace, headers: Collection[str]) -> Body:
    """The parts of the request that may be changed, with these headers."""
    header, query = {}, {}
    for name, value in trace.headers:
        if name.title() in headers:
            header[name.title()] = value
    asked = parse_qs(trace.query.decode("latin-1"), keep_blank_values=True, errors="replace")
    for name, values in asked.items():
        query[name] = values if len(values) > 1 else values[0]
    sent: Body = {"method": trace.method, "path": trace.path, "query": query, "header": header}
    if trace.body and trace.body != LEFT_OUT:
        sent["body"] = _json_in(trace.body)
    return sent


def _json_in(body: bytes) -> Any:
    """What a body says; the body itself where it is no JSON, or too large or too deep to be
    mended.
    """
    if not _is_small(body):
        return body
    try:
        value = orjson.loads(body)
    except ValueError:
        return body
    return body if is_deeper_than(value, DEEPEST) else value


def _is_small(body: bytes) -> bool:
    """Whether a body can be mended while others wait."""
    return len(body) <= LARGEST and not may_have_more_values(body, WIDEST)


def _may_be_repaired(trace: Trace, rule: Json) -> bool:
    """Whether a nearest request is looked for: one whose target is stored whole."""
    if is_cut(trace) or not _is_small(trace.body or b""):
        return False
    return bool(rule.get("has_nearest", True) or trace.simulated)


def _merchant(sandbox: Sandbox, trace: Trace, values: dict[str, str]) -> Merchant:
    """The merchant of the caller; of one that a fault has kept unknown, that of the
    record in the path.
    """
    if trace.caller is not None and trace.caller.merchant_id in sandbox.stores:
        return sandbox.stores[trace.caller.merchant_id].merchant
    for store in sandbox.stores.values():
        for name in TABLES.keys() & values.keys():
            if store.tables[TABLES[name]].find(values[name].lower()) is not None:
                return store.merchant
    return sandbox.store.merchant


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


def _shown(base_url: str, trace: Trace, s: Attempt, found: Body) -> Body | None:
    """The changes and the commands of the nearest request; None where a shell cannot take
    one of them.
    """
    changed: list[Body] = []
    commands, calls = [], []
    for call, why in (*s.before, (s.question(s.request), "")):
        commands.append(command(*call[:5], base_url=base_url, has_admin_key=False) or "")
        headers, body = {**call.headers}, body_of(call.body)
        del headers["authorization"]
        calls.append(call._asdict() | {"headers": headers, "body": body})
        del calls[-1]["is_internal"]
        if why:
            text = f"{call.method} {call.path} {call.body.decode()}".rstrip()
            changed.append(_changed("before", ABSENT, text, why))
    if found["kind"] == AUTH:
        sender = None if trace.caller is None else trace.caller.kind
        why = "It is valid and has every scope."
        changed.append(_changed("header.Authorization", sender, "Bearer <the ready token>", why))
    sent, summary = _sent(trace, [*_KEPT_HEADERS, *_DROPPED_HEADERS]), str(found["summary"])
    for place, given, made in changes(sent, s.request):
        changed.append(_changed(place, given, made, s.reasons.get(place, summary)))
    if not all(commands):
        return None
    return {"changes": changed, "calls": calls, "curl": " &&\n".join(commands)}


def _changed(where: str, given: Any, made: Any, why: str) -> Body:
    """A change as it is shown."""
    shown: Body = {"where": where, "from": given, "to": made, "why": why}
    for name in ("from", "to"):
        value = shown[name]
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        shown[name] = None if value is ABSENT else brief(value)
    return shown


def _excerpt(s: Attempt, refusal: Refusal) -> Body | None:
    """The pointer and excerpt of what a refusal of the contract or of the credential is about; None
    without one.
    """
    pointer = _pointer(s, refusal)
    if pointer is None:
        return None
    node = located(s.mender.document, pointer)[1]
    text = orjson.dumps(node, option=orjson.OPT_NON_STR_KEYS).decode()
    return {"pointer": pointer, "excerpt": shortened(text, _LONGEST_EXCERPT)}


def _pointer(s: Attempt, refusal: Refusal) -> str | None:
    """Where the contract has what a refusal is about."""
    document, operation = s.mender.document, s.operations.get(s.called_method)
    if operation is None:
        return None
    part = s.rules.get(refusal.code, {}).get("part")
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
