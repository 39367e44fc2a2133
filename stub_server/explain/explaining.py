"""Explains a refusal: what the contract, the rule or the state says, and the nearest request that would succeed now."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple

import orjson

from ..calls.call import CONTROL
from ..calls.server import READY_FOR, Server
from ..contract.document import Document, Operation
from ..contract.schema import Schemas
from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.record import Body
from ..store.memory import Merchant
from .attempt import BEFORE, Attempt, Change
from .contract_repairs import example_of
from .curl import curl
from .harmless import said
from .kinds import AUTH, CONTRACT, FAULT, KINDS, RULE, Kind
from .mending import ABSENT, Mender
from .places import place_of
from .rehearsal import Answer, Question, Rehearsal
from .routes import routed
from .search import Search
from .sent import Recorded, Sent, sent_of
from .situation import TABLES, Situation
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
_LIVES = frozenset(("Sandbox orders", "Sandbox subscriptions"))
"""Tags of the control operations whose requests are repaired: they act on one world and nothing else."""
SHOWN = 400  # characters of a value that is shown in a change
_WITHOUT_A_WORLD = frozenset(("host_not_allowed", "delivery_not_allowed", "sandbox_not_found"))
"""Codes of requests that are refused before a world is chosen: the default one holds and explains them."""
_WISHED = ("prefer", "simulate")


class _Surface(NamedTuple):
    """A contract whose requests are repaired, its paths as they are sent, and what mends values for it."""

    document: Document
    mender: Mender


class Explainer:
    """One per server. One explanation is made at a time, in the turns that requests leave."""

    def __init__(
        self, document: Document, schemas: Schemas, control: Document, controls: Schemas, rehearsal: Rehearsal
    ) -> None:
        """`document` and `control` are the two contracts, each with its schemas."""
        self._rehearsal = rehearsal
        lives = _of_lives(control)
        self._api = _Surface(document, Mender(document, schemas))
        self._control = _Surface(lives, Mender(lives, controls))
        self._turn = asyncio.Lock()

    async def explain(self, server: Server, world: Sandbox, entry: Recorded) -> Body | None:
        """What is shown of a refusal that the journal has recorded; None for a request that was accepted."""
        if entry.status < 400:
            return None
        sent = sent_of(entry, is_bare=not world.journal.keeps_bodies)
        async with self._turn:
            return await self._explained(server, world, sent)

    async def _explained(self, server: Server, world: Sandbox, sent: Sent) -> Body:
        kind = _kind_of(sent)
        path = _in_world(sent)
        is_control = path.startswith(CONTROL)
        document, mender = surface = self._control if is_control else self._api
        merchant = _merchant(world, sent, surface)
        stage = self._rehearsal.stage(world)
        first = _as_it_was(sent, _token(server, world, merchant), document)
        found: Attempt | None = None
        met: tuple[str, ...] = ()
        can_be_tried = not (world.is_broken or _is_cut(sent) or (is_control and routed(document, path) is None))
        if can_be_tried and (kind.is_listed or sent.simulated):
            search = Search(server, document, mender, self._rehearsal, merchant.id, said(sent.body))
            try:
                found = await search.nearest(first, stage)
            except Exception:  # whoever reads the journal gets the rest of it all the same
                log.exception("defect while looking for the nearest of a %s of sandbox %s", sent.code, world.name)
            met = tuple(search.met) if found is None else ()
        situation = Situation(mender, document, self._rehearsal.stage(world), merchant.id, first, _answer(sent))
        operation = _operation(situation, sent)
        name = _name(kind, sent, is_same=found is not None and not found.changes and not found.before)
        return {
            "summary": sent.message or f"It was refused with {sent.code}. {kind.text}",
            "kind": name,
            "contract": place_of(document, operation, sent.details, sent.code) if name != FAULT else None,
            "rule": None if name == CONTRACT else {"name": sent.code, "text": kind.text},
            "state": _state(situation, (sent.code, *met)) if operation is not None and name != FAULT else None,
            "nearest": None if found is None else self._shown(server, world, sent, found, name),
        }

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


def _state(situation: Situation, codes: tuple[str, ...]) -> Body | None:
    """The state behind a refusal, or behind the first that would come next where no repair helps."""
    return next((state for code in codes if (state := state_of(situation, code)) is not None), None)


def _in_world(sent: Sent) -> str:
    """The path in its world: a request that was refused before a world was chosen still has its prefix."""
    has_prefix = sent.code in _WITHOUT_A_WORLD and sent.path.startswith("/s/")
    return "/" + sent.path[3:].partition("/")[2] if has_prefix else sent.path


def _of_lives(control: Document) -> Document:
    """The control contract as far as its operations act on orders and subscriptions, with whole paths."""
    paths = {
        CONTROL + path: item
        for path, item in control.raw["paths"].items()
        if any(
            _LIVES.intersection(operation.get("tags", ())) for operation in item.values() if isinstance(operation, dict)
        )
    }
    return Document({**control.raw, "paths": paths})


def _merchant(world: Sandbox, sent: Sent, surface: _Surface) -> Merchant:
    """Whose records a request is about: the caller's, or of one who is not known those of the record in the path."""
    if sent.merchant_id in world.stores:
        return world.stores[sent.merchant_id].merchant
    found = routed(surface.document, _in_world(sent))
    for name, ident in found.values.items() if found is not None else ():
        for store in world.stores.values():
            if name in TABLES and store.tables[TABLES[name]].find(ident.lower()) is not None:
                return store.merchant
    return world.store.merchant


def _kind_of(sent: Sent) -> Kind:
    kind = KINDS.get(sent.code, Kind(RULE, "The message says what is asked for.", None, False))
    return kind._replace(kind=AUTH) if sent.status == 401 else kind


def _name(kind: Kind, sent: Sent, *, is_same: bool) -> str:
    """The kind of a refusal: what a fault rule or a header made is a fault, whatever its code says.

    A record that the ready token finds and an API key did not is hidden from that key.
    """
    labels = (sent.simulated or "").split(", ")
    is_wished = any(label in _WISHED for label in labels)
    if is_same and sent.code == "not_found" and (sent.caller or "").startswith("private_key"):
        return AUTH
    return FAULT if is_wished or (is_same and any(label.startswith("fault:") for label in labels)) else kind.kind


def _token(server: Server, world: Sandbox, merchant: Merchant) -> str:
    """The ready token of the caller's merchant: every scope, for thirty days."""
    return server.tokens.issue(world.name, merchant.id, merchant.user_id, ["*"], READY_FOR)[0]


def _as_it_was(sent: Sent, token: str, document: Document) -> Attempt:
    """The request as it was sent, with the ready token, and without what asks for a failure.

    A body that is not known is taken from the contract's example.
    """
    headers = {name: sent.headers[name] for name in KEPT if name in sent.headers}
    headers["authorization"] = f"Bearer {token}"
    path, unknown = _in_world(sent), sent.why_unknown
    attempt = Attempt(Question(sent.method, path, sent.query, headers, (None if unknown else sent.body) or b""))
    found = routed(document, path)
    operation = None if found is None else found.operations.get(sent.method)
    if unknown is not None and operation is not None and operation.body is not None:
        example = example_of(operation, document.resolve)
        if example is not ABSENT:
            why = f"What was sent is not known: {unknown}. This is the contract's example."
            return attempt.with_body(example, Change("body", None, example, why))
    return attempt


def _is_cut(sent: Sent) -> bool:
    """Whether the request's line is not known as a whole any more."""
    return sent.path.endswith("…") or sent.query.endswith("…")


def _first_changes(sent: Sent, name: str, base: str) -> list[Change]:
    """How every attempt differs from what was sent."""
    changes = []
    if name == AUTH and sent.code not in ("host_not_allowed", "delivery_not_allowed"):
        ready = "Bearer <the ready token>"
        changes.append(Change("header.Authorization", sent.caller, ready, "It is valid and has every scope."))
    path = _in_world(sent)
    if sent.code == "sandbox_not_found" or path != sent.path:
        changes.append(Change("path", sent.path, base + path, "This sandbox exists and holds the refusal."))
    for header, why in DROPPED.items():
        if header in sent.headers and (header != "host" or sent.code == "host_not_allowed"):
            shown = "-".join(part.capitalize() for part in header.split("-"))
            changes.append(Change(f"header.{shown}", sent.headers[header], None, why))
    return changes


def _operation(situation: Situation, sent: Sent) -> Operation | None:
    found = routed(situation.document, _in_world(sent))
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
