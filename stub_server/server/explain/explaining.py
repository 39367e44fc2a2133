"""Explains a refusal: what the contract, the rule or the state says, and the nearest request that
would succeed now.
"""

import asyncio
from typing import Any

import orjson

from ...contract.document import JSON, Document, Operation
from ...contract.pointers import below, located, within
from ...contract.secrets import LEFT_OUT
from ...contract.source import Json
from ...core.log import log
from ...core.problem import Detail, Refusal
from ...core.record import Body, object_in
from ...core.text import shortened
from ...engine.kept import Trace
from ...engine.sandbox import DEFAULT, Sandbox
from ...engine.tables.store import Merchant
from ..curl import command
from ..journal.entries import body_of, is_cut
from ..layers.hosts import without_prefix
from ..layers.inside import Question
from ..request import CONTROL
from ..server import READY_FOR, Server
from .attempt import BEFORE, TABLES, Situation, changed
from .mending import Mender, steps
from .rehearsal import Rehearsal
from .repairs import nearest
from .states import state_behind

AUTH, CONTRACT, REFERENCE, RULE, FAULT = "auth", "contract", "reference", "rule", "fault"
"""The kinds of refusals. `x-rules` of the contract's `ErrorCode` has kind and rule of each code."""

_KEPT_HEADERS = ("content-type", "idempotency-key")
_DROPPED_HEADERS = {
    "prefer": "It asks the sandbox to fail.",
    "x-sandbox-simulate": "It asks the sandbox to fail.",
    "x-sandbox-delay": "It asks the sandbox to wait.",
    "x-sandbox-as-of": "It asks for an earlier state.",
    "webhook-id": "It marks the request as a webhook delivery.",
    "host": "It names another machine.",
}
"""Headers that the nearest request leaves out, and why."""
_NOT_THIS_SERVER = ("host_not_allowed", "delivery_not_allowed")
_NO_SANDBOX = (*_NOT_THIS_SERVER, "sandbox_not_found")
"""Codes of requests that are refused before a sandbox is chosen: the journal of
`default` has them.
"""
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
_LONGEST_EXCERPT = 600  # characters
_PARTS = {
    **dict.fromkeys(
        ("missing_credentials", "invalid_token", "token_expired", "jwt_required"), "security"
    ),
    **dict.fromkeys(("insufficient_scope", "scope_escalation"), "x-scopes"),
    **dict.fromkeys(("unsupported_media_type", "malformed_json"), "requestBody"),
}
"""By error code, the part of an operation that is not followed."""


class Explainer:
    """One per server. It makes one explanation at a time; other requests are served in between."""

    def __init__(self, mender: Mender, rehearsal: Rehearsal) -> None:
        self._mender, self._rehearsal, self._turn = mender, rehearsal, asyncio.Lock()
        self._rules = mender.document.schema("ErrorCode").get("x-rules", {})

    async def explain(self, server: Server, sandbox: Sandbox, trace: Trace) -> Body | None:
        """The explanation of a refusal in the journal; None for a request that was accepted.

        Of a request to the control surface it has the rule alone.
        """
        if trace.status < 400:
            return None
        async with self._turn:
            found = await self.explain_now(server, sandbox, trace)
        await asyncio.sleep(0)  # to show a large body takes a turn of its own
        return found

    async def explain_now(self, server: Server, sandbox: Sandbox, trace: Trace) -> Body:
        """The explanation of a refusal, while no other one is made."""
        code, answer = trace.code or "", object_in(trace.answer or b"")
        rule = self._rules.get(code, _UNKNOWN)
        refusal = Refusal(str(answer.get("message", "")), code=code, details=_details_in(answer))
        situation = self._situation(server, sandbox, trace, refusal)
        operations = situation.operations
        method = {"HEAD": "GET"}.get(trace.method, trace.method)
        operation = operations.get(method) or next(iter(operations.values()), None)
        state, is_found = None, False
        if operation is not None and trace.status != 401:  # which is about the caller's key
            state = state_behind(situation, code)
        if _may_be_repaired(trace, rule) and not sandbox.status.is_broken:
            is_found = await _has_nearest(situation)
            if not is_found and state is None and operation is not None:
                state = state_behind(situation, situation.refusal.code)
        kind = _kind(rule["kind"], trace, is_same=is_found and not situation.changes)
        found: Body = {"summary": _summary(trace, refusal, rule), "kind": kind}
        found |= dict.fromkeys(("contract", "rule", "state", "nearest"))
        if operation is not None and kind != FAULT:
            found["contract"] = _place(situation.document, operation, refusal)
            found["state"] = state
        if kind != CONTRACT:
            found["rule"] = {"name": code, "text": rule["text"]}
        if is_found:
            found["nearest"] = _shown(server, sandbox, trace, situation, kind)
        return found

    def _situation(
        self, server: Server, sandbox: Sandbox, trace: Trace, refusal: Refusal
    ) -> Situation:
        """The request as it was sent, with the ready token of the caller's merchant, in a copy of
        the sandbox.
        """
        merchant = _merchant(sandbox, trace, self._mender.document)
        token = server.tokens.issue(sandbox, merchant.id, merchant.user_id, ["*"], READY_FOR)[0]
        headers = {name: value for name, value in trace.headers if name in _KEPT_HEADERS}
        headers["authorization"] = f"Bearer {token}"
        body = trace.body
        if body is None or body == LEFT_OUT:
            body = b""
        question = Question(
            trace.method, _path_of(trace), trace.query.decode("latin-1"), headers, body
        )
        copy = self._rehearsal.copy_of(sandbox)
        return Situation(
            self._mender, self._rehearsal, copy, merchant.id, question, refusal, self._rules
        )


def _details_in(answer: Body) -> list[Detail]:
    """The violations that an answer names; none where it is of a file, and of another shape."""
    found = answer.get("details")
    if not isinstance(found, list):
        return []
    return [each for each in found if isinstance(each, dict) and _is_detail(each)]


def _is_detail(found: Body) -> bool:
    return all(isinstance(found.get(name), str) for name in ("field", "code", "message"))


async def _has_nearest(situation: Situation) -> bool:
    """Whether repairs make the request succeed. After a defect the rest of the explanation is
    shown all the same.
    """
    try:
        return await nearest(situation)
    except Exception:
        code, name = situation.refusal.code, situation.copy.name
        log.exception("defect while looking for the nearest of a %s of sandbox %s", code, name)
        return False


def _summary(trace: Trace, refusal: Refusal, rule: Json) -> str:
    """What the refusal says, and which settings of a server would accept the request."""
    text = refusal.message or f"The request was refused with {refusal.code}. {rule['text']}"
    if _path_of(trace).startswith(CONTROL):
        return text
    codes = {detail["code"] for detail in refusal.details}
    for code, advice in _SETTINGS.items():
        if code in codes:
            text += f" {advice}"
    return text


def _path_of(trace: Trace) -> str:
    """The path without the prefix, which a request still has that was refused before a
    sandbox was chosen.
    """
    if trace.code in _NO_SANDBOX:
        return without_prefix(trace.path) or "/"
    return trace.path


def _merchant(sandbox: Sandbox, trace: Trace, document: Document) -> Merchant:
    """The merchant of the caller; of one that a fault has kept unknown, that of the
    record in the path.
    """
    if trace.caller is not None and trace.caller.merchant_id in sandbox.stores:
        return sandbox.stores[trace.caller.merchant_id].merchant
    _, values = document.routed(_path_of(trace))
    for name, ident in values.items():
        table = TABLES.get(name)
        for store in sandbox.stores.values():
            if table is not None and store.tables[table].find(ident.lower()) is not None:
                return store.merchant
    return sandbox.store.merchant


def _may_be_repaired(trace: Trace, rule: Json) -> bool:
    """Whether a nearest request is looked for: one to the API, whose target is stored whole."""
    if is_cut(trace) or _path_of(trace).startswith(CONTROL):
        return False
    return bool(rule.get("has_nearest", True) or trace.simulated)


def _kind(usual: str, trace: Trace, *, is_same: bool) -> str:
    """The kind of a refusal. A failure that a fault rule or a header caused is a fault, whatever
    its code is.

    A record that the ready token finds and an API key did not is hidden from that key.
    """
    has_key = trace.caller is not None and trace.caller.kind == "private_key"
    if is_same and has_key and trace.code == "not_found":
        return AUTH
    simulated = trace.simulated or ""
    if "prefer" in simulated.split(", ") or "simulate" in simulated.split(", "):
        return FAULT
    if is_same and "fault:" in simulated:
        return FAULT
    return AUTH if trace.status == 401 else usual


def _shown(server: Server, sandbox: Sandbox, trace: Trace, s: Situation, kind: str) -> Body | None:
    """The changes and the commands of the nearest request; None where a shell cannot take
    one of them.
    """
    base, has_key = server.settings.url, server.guard.admin_key is not None
    if sandbox.name != DEFAULT:
        base += f"/s/{sandbox.name}"
    commands, calls = [], []
    for call in (*s.before, s.question):
        text = command(
            call.method,
            call.path,
            call.query,
            call.headers,
            call.body,
            base_url=base,
            has_admin_key=has_key,
        )
        if text is None:
            return None
        commands.append(text)
        calls.append(_call(call))
    changes = [*_first_changes(trace, kind, base), *s.changes.values()]
    return {
        "changes": sorted(changes, key=lambda change: change["where"] != BEFORE),
        "calls": calls,
        "curl": " &&\n".join(commands),
    }


def _call(question: Question) -> Body:
    """A call as a program sends it, without its credential."""
    headers = dict(question.headers)
    headers.pop("authorization", None)
    return {
        "method": question.method,
        "path": question.path,
        "query": question.query,
        "headers": headers,
        "body": body_of(question.body),
    }


def _first_changes(trace: Trace, kind: str, base: str) -> list[Body]:
    """What every nearest request has differently: the credential, this sandbox, and no header that
    makes it fail.
    """
    changes = []
    if kind == AUTH and trace.code not in _NOT_THIS_SERVER:
        caller, sender, ready = trace.caller, None, "Bearer <the ready token>"
        if caller is not None:
            sender = f"{caller.kind} {caller.key_id or caller.subject}"
        changes.append(
            changed("header.Authorization", sender, ready, "It is valid and has every scope.")
        )
    path = _path_of(trace)
    if trace.code == "sandbox_not_found" or path != trace.path:
        changes.append(
            changed(
                "path", trace.path, base + path, "The request reached no sandbox. This one exists."
            )
        )
    sent = dict(trace.headers)
    for header, why in _DROPPED_HEADERS.items():
        if header in sent and (header != "host" or trace.code == "host_not_allowed"):
            changes.append(changed(f"header.{header.title()}", sent[header], None, why))
    return changes


# -- what a refusal is about: the place in the contract


def _place(document: Document, operation: Operation, refusal: Refusal) -> Body | None:
    """The pointer and excerpt that a refusal of the contract or of the credential is about; None
    without one.
    """
    base = below("#", *operation.at)
    part = _PARTS.get(refusal.code)
    if part is not None:
        return _excerpt(f"{base}/{part}", operation.raw.get(part, document.raw.get(part, [])))
    if not refusal.details:
        return None
    field, place = refusal.details[0]["field"], refusal.details[0].get("in")
    if place == "body" and operation.body is not None:
        return _in_body(document, base, field)
    for parameter in operation.parameters:
        if parameter.name.lower() == field.lower():
            return _excerpt(below("#", *parameter.at, "schema"), parameter.schema)
    return None


def _in_body(document: Document, base: str, field: str) -> Body:
    """The schema of a member of the body; of a member that it does not name, the object's."""
    whole = below(base, "requestBody", "content", JSON, "schema")
    pointer, schema, _ = within(document, whole, steps("" if field == "body" else field))
    node = located(document, pointer)[1]
    return _excerpt(node.get("$ref", pointer), schema)


def _excerpt(pointer: str, node: Any) -> Body:
    if isinstance(node, dict):
        node = {name: value for name, value in node.items() if not name.startswith("x-basis")}
        if "properties" in node:
            node["properties"] = list(node["properties"])
    text = orjson.dumps(node, option=orjson.OPT_NON_STR_KEYS).decode()
    return {"pointer": pointer, "excerpt": shortened(text, _LONGEST_EXCERPT)}
