"""Explains a refusal: what the contract, the rule or the state says, and the nearest request that would succeed now."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from ..calls.call import CONTROL
from ..calls.curl import command
from ..calls.server import READY_FOR, Server
from ..contract.document import Document, Operation
from ..contract.schema import Schemas
from ..contract.secrets import LEFT_OUT
from ..contract.source import METHODS, Json
from ..engine.journal import Trace
from ..engine.sandbox import DEFAULT, Sandbox
from ..http.inside import Question
from ..kernel.record import Body
from ..store.memory import Merchant
from .attempt import BEFORE, TABLES, Attempt, Situation, routed
from .contract_repairs import example_of
from .kinds import AUTH, CONTRACT, FAULT, KINDS, RULE, Kind
from .mending import ABSENT, Change, Mender
from .rehearsal import Answer, Rehearsal
from .search import Search, values_of
from .states import state_of

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
_LONGEST_EXCERPT = 600  # characters
_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")
log = logging.getLogger("stub_server")
_REPAIRED_TAGS = frozenset(("Sandbox orders", "Sandbox subscriptions"))
"""Tags of the control operations whose requests are repaired: they change one sandbox and nothing else."""
_SHOWN = 400  # characters of a value that is shown in a change
_NOT_THIS_SERVER = ("host_not_allowed", "delivery_not_allowed")
_NO_SANDBOX = (*_NOT_THIS_SERVER, "sandbox_not_found")
"""Codes of requests that are refused before a sandbox is chosen: the journal of `default` has them."""


class _Surface(NamedTuple):
    """A contract whose requests are repaired, with its paths as they are sent, and its mender."""

    document: Document
    mender: Mender


class Explainer:
    """One per server. It makes one explanation at a time; other requests are served in between."""

    def __init__(
        self, document: Document, schemas: Schemas, control: Document, controls: Schemas, rehearsal: Rehearsal
    ) -> None:
        """`document` and `control` are the two contracts, each with its schemas."""
        self._rehearsal = rehearsal
        paths = {CONTROL + path: item for path, item in control.raw["paths"].items() if _is_repaired(item)}
        repaired = Document({**control.raw, "paths": paths})
        self._api = _Surface(document, Mender(document, schemas))
        self._control = _Surface(repaired, Mender(repaired, controls))
        self._turn = asyncio.Lock()

    async def explain(self, server: Server, sandbox: Sandbox, trace: Trace) -> Body | None:
        """The explanation of a refusal in the journal; None for a request that was accepted."""
        if trace.status < 400:
            return None
        async with self._turn:
            return await self._explained(server, sandbox, trace)

    async def _explained(self, server: Server, sandbox: Sandbox, trace: Trace) -> Body:
        code, refusal, path = trace.code or "", _refusal_of(trace), _path_in_sandbox(trace)
        kind = KINDS.get(code, Kind(RULE, "The message says what is asked for.", None, False))
        kind = kind._replace(kind=AUTH) if trace.status == 401 else kind
        is_control = path.startswith(CONTROL)
        document, mender = self._control if is_control else self._api
        merchant = _merchant(sandbox, trace, document)
        token = server.tokens.issue(sandbox.name, merchant.id, merchant.user_id, ["*"], READY_FOR)[0]
        first = _first_attempt(trace, token, document, keeps_bodies=sandbox.journal.keeps_bodies)
        found: Attempt | None = None
        codes = [code]
        is_cut = trace.path.endswith("…") or trace.query.endswith("…".encode())
        can_be_tried = not (sandbox.is_broken or is_cut or (is_control and routed(document, path) is None))
        if can_be_tried and (kind.is_listed or trace.simulated):
            search = Search(server, document, mender, self._rehearsal, merchant.id, values_of(trace.body))
            try:
                found = await search.nearest(first, self._rehearsal.copy_of(sandbox))
            except Exception:  # the rest of the explanation is shown all the same
                log.exception("defect while looking for the nearest of a %s of sandbox %s", code, sandbox.name)
            codes += search.codes if found is None else ()
        answer = Answer(trace.status, b"", code, str(refusal.get("message", "")), tuple(refusal.get("details", ())))
        situation = Situation(
            mender, document, self._rehearsal, self._rehearsal.copy_of(sandbox), merchant.id, first, answer
        )
        operations = {} if situation.routed is None else situation.routed.operations
        operation = operations.get({"HEAD": "GET"}.get(trace.method, trace.method)) or next(
            iter(operations.values()), None
        )
        name = _kind_shown(kind, trace, is_same=found is not None and not found.changes and not found.before)
        states = (state_of(situation, each) for each in codes if operation is not None and name != FAULT)
        return {
            "summary": answer.message or f"The request was refused with {code}. {kind.text}",
            "kind": name,
            "contract": place_of(document, operation, answer) if operation and name != FAULT else None,
            "rule": None if name == CONTRACT else {"name": code, "text": kind.text},
            "state": next((state for state in states if state is not None), None),
            "nearest": None if found is None else _shown(server, sandbox, trace, found, name),
        }


def _is_repaired(item: Mapping[str, Any]) -> bool:
    """Whether a path of the control contract changes orders or subscriptions."""
    operations = [operation for operation in item.values() if isinstance(operation, dict)]
    return any(_REPAIRED_TAGS.intersection(operation.get("tags", ())) for operation in operations)


def _refusal_of(trace: Trace) -> Mapping[str, Any]:
    """The body of a refusal; empty where none was stored."""
    try:
        body = orjson.loads(trace.answer or b"")
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _path_in_sandbox(trace: Trace) -> str:
    """The path without the prefix, which a request still has that was refused before a sandbox was chosen."""
    has_prefix = trace.code in _NO_SANDBOX and trace.path.startswith("/s/")
    return "/" + trace.path[3:].partition("/")[2] if has_prefix else trace.path


def _merchant(sandbox: Sandbox, trace: Trace, document: Document) -> Merchant:
    """The merchant of the caller; of an unknown caller, that of the record in the path."""
    if trace.caller is not None and trace.caller.merchant_id in sandbox.stores:
        return sandbox.stores[trace.caller.merchant_id].merchant
    found = routed(document, _path_in_sandbox(trace))
    for name, ident in found.values.items() if found is not None else ():
        for store in sandbox.stores.values():
            if name in TABLES and store.tables[TABLES[name]].find(ident.lower()) is not None:
                return store.merchant
    return sandbox.store.merchant


def _kind_shown(kind: Kind, trace: Trace, *, is_same: bool) -> str:
    """The kind of a refusal. A failure that a fault rule or a header caused is a fault, whatever its code is.

    A record that the ready token finds and an API key did not is hidden from that key.
    """
    labels = (trace.simulated or "").split(", ")
    if is_same and trace.code == "not_found" and trace.caller is not None and trace.caller.kind == "private_key":
        return AUTH
    is_asked_for = "prefer" in labels or "simulate" in labels
    is_fault = is_asked_for or (is_same and any(label.startswith("fault:") for label in labels))
    return FAULT if is_fault else kind.kind


def _first_attempt(trace: Trace, token: str, document: Document, *, keeps_bodies: bool) -> Attempt:
    """The request as it was sent, with the ready token, and without headers that cause a failure.

    An unknown body is replaced by the contract's example.
    """
    sent, path = dict(trace.headers), _path_in_sandbox(trace)
    headers = {name: sent[name] for name in _KEPT_HEADERS if name in sent}
    headers["authorization"] = f"Bearer {token}"
    unknown = None
    if not keeps_bodies:
        unknown = "the journal of this server stores no bodies (--journal 0)"
    elif trace.body == LEFT_OUT:
        unknown = "the journal leaves out a large body that may contain secrets"
    elif trace.body is None and (sent.get("content-length", "0") != "0" or "transfer-encoding" in sent):
        unknown = "it was refused before it was read"
    body = b"" if unknown is not None else trace.body or b""
    attempt = Attempt(Question(trace.method, path, trace.query.decode("latin-1"), headers, body))
    found = routed(document, path)
    operation = None if found is None else found.operations.get(trace.method)
    if unknown is not None and operation is not None and operation.body is not None:
        example = example_of(operation, document.resolve)
        if example is not ABSENT:
            why = f"The body that was sent is not known: {unknown}. This is the contract's example."
            return attempt.with_body(example, Change("body", None, example, why))
    return attempt


def _shown(server: Server, sandbox: Sandbox, trace: Trace, found: Attempt, kind: str) -> Body | None:
    """The changes and the commands of the nearest request; None where a shell cannot take one of them."""
    base = server.url + ("" if sandbox.name == DEFAULT else f"/s/{sandbox.name}")
    has_key = server.admin_key is not None
    commands = []
    for call in (*found.before, found.question):
        text = command(call.method, call.path, call.query, call.headers, call.body, base, has_admin_key=has_key)
        if text is None:
            return None
        commands.append(text)
    changes = [*_first_changes(trace, kind, base), *found.changes]
    return {
        "changes": [
            {"where": c.where, "from": _short(c.from_), "to": _short(c.to), "why": c.why}
            for c in sorted(changes, key=lambda c: c.where != BEFORE)
        ],
        "curl": " &&\n".join(commands),
    }


def _first_changes(trace: Trace, kind: str, base: str) -> list[Change]:
    """The differences of the first attempt from what was sent."""
    changes = []
    if kind == AUTH and trace.code not in _NOT_THIS_SERVER:
        caller = trace.caller
        sender = None if caller is None else f"{caller.kind} {caller.key_id or caller.subject}"
        ready = "Bearer <the ready token>"
        changes.append(Change("header.Authorization", sender, ready, "It is valid and has every scope."))
    path = _path_in_sandbox(trace)
    if trace.code == "sandbox_not_found" or path != trace.path:
        changes.append(Change("path", trace.path, base + path, "This sandbox exists and its journal has the refusal."))
    sent = dict(trace.headers)
    for header, why in _DROPPED_HEADERS.items():
        if header in sent and (header != "host" or trace.code == "host_not_allowed"):
            changes.append(Change(f"header.{header.title()}", sent[header], None, why))
    return changes


def _short(value: Any) -> Any:
    """A value as it is shown in a change: a long one as the beginning of its text."""
    try:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
    except TypeError:  # nested too deep to be written
        return "…"
    return value if len(text) <= _SHOWN else text[:_SHOWN] + "…"


# -- the place in the contract


def place_of(document: Document, operation: Operation, refusal: Answer) -> Body | None:
    """The pointer and excerpt that a refusal of the contract or of the credential is about; None without one."""
    code, details = refusal.code, refusal.details
    base = f"#/paths/{_escaped(operation.path)}/{operation.method.lower()}"
    if code == "method_not_allowed":
        item = document.raw["paths"][operation.path]
        methods = sorted(name for name in item if name in METHODS)
        return {"pointer": base.rpartition("/")[0], "excerpt": ", ".join(name.upper() for name in methods)}
    if code in ("insufficient_scope", "scope_escalation"):
        return _excerpt(base + "/x-scopes", operation.raw.get("x-scopes", []))
    if code in ("missing_credentials", "invalid_token", "token_expired", "jwt_required"):
        return _excerpt(base + "/security", operation.raw.get("security", document.raw.get("security", [])))
    if code in ("unsupported_media_type", "malformed_json"):
        content = (document.resolve(operation.raw.get("requestBody")) or {}).get("content", {})
        return _excerpt(base + "/requestBody/content", list(content))
    if not details:
        return None
    entry = details[0]
    if entry.get("in") == "body":
        return _in_body(document, operation, base, entry["field"])
    for number, raw in enumerate(operation.raw.get("parameters", ())):
        parameter = document.resolve(raw)
        if parameter["name"].lower() == entry["field"].lower():
            pointer = raw.get("$ref", f"{base}/parameters/{number}")
            return _excerpt(pointer + "/schema", parameter["schema"])
    return None


def _in_body(document: Document, operation: Operation, base: str, field: str) -> Body | None:
    """The schema of a member of the body; of a member that it does not name, the object's."""
    if operation.body is None:
        return None
    pointer, node = f"{base}/requestBody/content/application~1json/schema", operation.body
    pointer, node = _followed(document, pointer, node)
    if field == "body":
        return _excerpt(pointer, node)
    for index, name in _STEP.findall(field):
        step = "items" if index else "properties"
        inner = node.get("items") if index else node.get("properties", {}).get(name)
        if inner is None and not index and isinstance(node.get("additionalProperties"), dict):
            step, inner, name = "additionalProperties", node["additionalProperties"], ""
        if inner is None:
            break
        pointer += f"/{step}" + (f"/{_escaped(name)}" if name and not index else "")
        pointer, node = _followed(document, pointer, inner)
    return _excerpt(pointer, node)


def _followed(document: Document, pointer: str, node: Json) -> tuple[str, Json]:
    while isinstance(node, dict) and "$ref" in node:
        pointer, node = node["$ref"], document.resolve({"$ref": node["$ref"]})
    return pointer, node


def _excerpt(pointer: str, node: Any) -> Body:
    if isinstance(node, dict):
        node = {name: value for name, value in node.items() if not name.startswith("x-basis")}
        if "properties" in node:
            node["properties"] = list(node["properties"])
    text = orjson.dumps(node, option=orjson.OPT_NON_STR_KEYS).decode()
    return {"pointer": pointer, "excerpt": text if len(text) <= _LONGEST_EXCERPT else text[:_LONGEST_EXCERPT] + "…"}


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
