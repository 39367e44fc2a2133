"""Explains a refusal: what the contract, the rule or the state says, and the nearest request that would succeed now."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import orjson

from ..calls.call import CONTROL
from ..calls.server import READY_FOR, Server
from ..contract.document import Document, Operation
from ..contract.schema import Schemas
from ..engine.sandbox import DEFAULT, Sandbox
from ..http.rehearsal import Answer, Question, Rehearsal
from ..kernel.record import Body
from ..store.memory import Merchant
from .attempt import BEFORE, Attempt, Change
from .contract_repairs import example_of
from .curl import curl
from .kinds import AUTH, CONTRACT, FAULT, KINDS, RULE, Kind
from .mending import ABSENT, Mender
from .places import place_of
from .routes import routed
from .search import Search
from .sent import Recorded, Sent, sent_of
from .situation import Situation
from .states import state_of

KEPT = ("content-type", "idempotency-key")
DROPPED = {
    "prefer": "It asks the sandbox to fail.",
    "x-sandbox-simulate": "It asks the sandbox to fail.",
    "x-sandbox-delay": "It asks the sandbox to wait.",
    "x-sandbox-as-of": "It asks for an earlier moment.",
    "webhook-id": "It says that this is a webhook's delivery.",
    "host": "It names another machine.",
}
"""Headers that the nearest request does without, and why."""
log = logging.getLogger("stub_server")
SHOWN = 400  # characters of a value that is shown in a change
_WISHED = ("prefer", "simulate")


class Explainer:
    """One per server. One explanation is made at a time, in the turns that requests leave."""

    def __init__(self, document: Document, schemas: Schemas, rehearsal: Rehearsal) -> None:
        self._document, self._rehearsal = document, rehearsal
        self._mender = Mender(document, schemas)
        self._turn = asyncio.Lock()

    async def explain(self, server: Server, world: Sandbox, entry: Recorded) -> Body | None:
        """What is shown of a refusal that the journal has recorded; None for a request that was accepted."""
        if entry.status < 400:
            return None
        async with self._turn:
            return await self._explained(server, world, sent_of(entry))

    async def _explained(self, server: Server, world: Sandbox, sent: Sent) -> Body:
        kind = _kind_of(sent)
        is_control = sent.path.startswith(CONTROL)
        merchant = (world.stores.get(sent.merchant_id or "") or world.store).merchant
        stage = self._rehearsal.stage(world)
        first = self._as_it_was(sent, _token(server, world, merchant))
        found: Attempt | None = None
        if not is_control and not world.is_broken and kind.is_listed | bool(sent.simulated) and not _is_cut(sent):
            search = Search(server, self._document, self._mender, self._rehearsal, merchant.id)
            try:
                found = await search.nearest(first, stage)
            except Exception:  # whoever reads the journal gets the rest of it all the same
                log.exception("defect while looking for the nearest of a %s of sandbox %s", sent.code, world.name)
        situation = Situation(
            self._mender, self._document, self._rehearsal.stage(world), merchant.id, first, _answer(sent)
        )
        operation = None if is_control else _operation(situation, sent)
        name = _name(kind, sent, is_same=found is not None and not found.changes and not found.before)
        return {
            "summary": sent.message,
            "kind": name,
            "contract": place_of(self._document, operation, sent.details, sent.code) if name != FAULT else None,
            "rule": None if name == CONTRACT else {"name": sent.code, "text": kind.text},
            "state": state_of(situation, sent.code) if operation is not None and name != FAULT else None,
            "nearest": None if found is None else self._shown(server, world, sent, found, name),
        }

    def _as_it_was(self, sent: Sent, token: str) -> Attempt:
        """The request as it was sent, with the ready token, and without what asks for a failure.

        A body that was not read, because the caller was not admitted, is taken from the contract's example.
        """
        headers = {name: sent.headers[name] for name in KEPT if name in sent.headers}
        headers["authorization"] = f"Bearer {token}"
        path = _in_world(sent)
        attempt = Attempt(Question(sent.method, path, sent.query, headers, sent.body or b""))
        is_sent = sent.headers.get("content-length", "0") != "0" or "transfer-encoding" in sent.headers
        found = routed(self._document, path)
        operation = None if found is None else found.operations.get(sent.method)
        if sent.body is None and is_sent and operation is not None and operation.body is not None:
            example = example_of(operation, self._document.resolve)
            if example is not ABSENT:
                why = "What was sent is not known: it was refused before it was read. This is the contract's example."
                return attempt.with_body(example, Change("body", None, example, why))
        return attempt

    def _shown(self, server: Server, world: Sandbox, sent: Sent, found: Attempt, name: str) -> Body | None:
        base = server.url + ("" if world.name == DEFAULT else f"/s/{world.name}")
        command = curl(found, base, has_admin_key=server.admin_key is not None)
        if command is None:
            return None
        changes = [*_first_changes(sent, name, base), *found.changes]
        return {
            "changes": [
                {"where": c.where, "from": _short(c.from_), "to": _short(c.to), "why": c.why}
                for c in sorted(changes, key=lambda c: c.where != BEFORE)
            ],
            "curl": command,
        }


def _in_world(sent: Sent) -> str:
    """The path without the prefix of a sandbox that does not exist."""
    is_prefixed = sent.code == "sandbox_not_found" and sent.path.startswith("/s/")
    return sent.path[sent.path.find("/", 3) :] if is_prefixed else sent.path


def _kind_of(sent: Sent) -> Kind:
    kind = KINDS.get(sent.code, Kind(RULE, "The message says what is asked for.", None, False))
    return kind._replace(kind=AUTH) if sent.status == 401 else kind


def _name(kind: Kind, sent: Sent, *, is_same: bool) -> str:
    """The kind of a refusal: what a fault rule or a header made is a fault, whatever its code says."""
    labels = (sent.simulated or "").split(", ")
    is_wished = any(label in _WISHED for label in labels)
    return FAULT if is_wished or (is_same and any(label.startswith("fault:") for label in labels)) else kind.kind


def _token(server: Server, world: Sandbox, merchant: Merchant) -> str:
    """The ready token of the caller's merchant: every scope, for thirty days."""
    return server.tokens.issue(world.name, merchant.id, merchant.user_id, ["*"], READY_FOR)[0]


def _is_cut(sent: Sent) -> bool:
    """Whether the request's line is not known as a whole any more."""
    return sent.path.endswith("…") or sent.query.endswith("…")


def _first_changes(sent: Sent, name: str, base: str) -> list[Change]:
    """How every attempt differs from what was sent."""
    changes = []
    if name == AUTH and sent.code not in ("host_not_allowed", "delivery_not_allowed"):
        ready = "Bearer <the ready token>"
        changes.append(Change("header.Authorization", sent.caller, ready, "It is valid and has every scope."))
    if sent.code == "sandbox_not_found":
        changes.append(Change("path", sent.path, base + _in_world(sent), "This sandbox exists."))
    for header, why in DROPPED.items():
        if header in sent.headers and (header != "host" or sent.code == "host_not_allowed"):
            shown = "-".join(part.capitalize() for part in header.split("-"))
            changes.append(Change(f"header.{shown}", sent.headers[header], None, why))
    return changes


def _operation(situation: Situation, sent: Sent) -> Operation | None:
    found = routed(situation.document, sent.path)
    if found is None:
        return None
    method = "GET" if sent.method == "HEAD" else sent.method
    return found.operations.get(method) or next(iter(found.operations.values()))


def _answer(sent: Sent) -> Answer:
    return Answer(sent.status, b"", sent.code, sent.message, tuple(sent.details))


def _short(value: Any) -> Any:
    """A value as it is shown in a change: a long one as the beginning of its text."""
    try:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
    except TypeError:  # nested too deep to be written
        return "…"
    return value if len(text) <= SHOWN else text[:SHOWN] + "…"
