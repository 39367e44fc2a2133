"""What state a record is in that a rule does not allow, which it would need, and how it gets there."""

from __future__ import annotations

from typing import NamedTuple

from ..contract.document import Lifecycle
from ..kernel.record import Body, Row
from .situation import TABLES, Situation
from .state_repairs import project_of

_NAMED = 4  # records
_LONGEST = 200  # characters of an id


class _Asked(NamedTuple):
    """The resource, its field, and the set of its lifecycle, or the values, that a rule asks for."""

    resource: str
    field: str
    needed: str | tuple[str, ...]


_STATES = {
    "order_already_paid": _Asked("Order", "status", "payable"),
    "order_not_payable": _Asked("Order", "status", "payable"),
    "order_not_refundable": _Asked("Order", "status", "refundable"),
    "project_not_active": _Asked("Project", "status", "selling"),
    "project_archived": _Asked("Project", "status", "open"),
    "plan_not_active": _Asked("Plan", "status", ("active",)),
    "plan_sold_out": _Asked("Plan", "max_subscribers", ()),
    "payment_method_not_allowed": _Asked("Plan", "payment_methods", ()),
    "refund_window_closed": _Asked("Order", "status", ("paid less than 90 days ago",)),
    "project_has_activity": _Asked("Project", "status", ("without paid or open orders and running subscriptions",)),
    "plan_in_use": _Asked("Plan", "status", ("without open orders and running subscriptions",)),
    "webhook_deleted": _Asked("WebhookLogEntry", "webhookId", ("a webhook that exists",)),
    "log_not_retryable": _Asked("WebhookLogEntry", "status", "retryable"),
    "api_key_expired": _Asked("ApiKey", "expires_at", ()),
}


def state_of(s: Situation, code: str) -> Body | None:
    """The state behind a refusal, as it is now; None where no record's state is behind it."""
    if code == "method_not_allowed":
        return _methods(s)
    if code in ("not_found", "merchant_not_found"):
        return _missing(s)
    asked = _moved(s) if code == "invalid_state_transition" else _STATES.get(code)
    row = None if asked is None else _row(s, asked.resource)
    if asked is None or row is None:
        return None
    lifecycle = s.stage.rules.lifecycles.get(asked.resource)
    is_ = row.public[asked.field]
    needed = list(asked.needed)
    moves: list[str] = []
    if lifecycle is not None and lifecycle.field == asked.field:
        if isinstance(asked.needed, str):
            needed = list(lifecycle.sets[asked.needed])
        elif code == "invalid_state_transition":
            wanted = _wanted(s, lifecycle)
            ways = [m for m in lifecycle.moves if m.to == wanted and m.from_ != "new"]
            from_ = dict.fromkeys(m.from_ for m in ways if s.operation.id in m.by)
            needed = [*from_] or [str(wanted)]  # what is already there stays
        moves = [f"{m.to} ({' or '.join(m.by)})" for m in lifecycle.exits(is_) if m.to != is_]
    return _shown(asked.resource, row.id, asked.field, is_, needed, moves)


def _methods(s: Situation) -> Body | None:
    """The methods that a path has."""
    if s.routed is None:
        return None
    path, operations = s.attempt.question, s.routed.operations
    moves = [f"{method} ({operation.id})" for method, operation in sorted(operations.items())]
    return _shown("Operation", path.path, "method", path.method, sorted(operations), moves)


def _missing(s: Situation) -> Body | None:
    """The records that the path could have named: those whose ids are nearly the given one, else the newest."""
    name = next(iter(s.values), "")
    table = s.store.api_keys if name == "publicKey" else s.table(name)
    if table is None:
        return None
    field = "public_key" if name == "publicKey" else "id"
    rows = [row for row in s.like(table, s.values[name]) if field == "id" or row.public["is_active"]]
    needed = [row.public[field] for row in rows[:_NAMED]] or ["a record of the caller's: there is none"]
    return _shown(table.spec.schema, s.values[name][:_LONGEST], field, None, needed, [])


def _shown(resource: str, ident: str, field: str, is_: object, needed: list[str], moves: list[str]) -> Body:
    return {"resource": resource, "id": ident, "field": field, "is": is_, "needed": needed, "moves": moves}


def _moved(s: Situation) -> _Asked | None:
    """The resource that was to move: the one of the path."""
    name = next((n for n in s.values if n in TABLES), "")
    table = s.table(name)
    lifecycle = None if table is None else s.stage.rules.lifecycles.get(table.spec.schema)
    return None if lifecycle is None else _Asked(lifecycle.resource, lifecycle.field, ())


def _wanted(s: Situation, lifecycle: Lifecycle) -> str | None:
    status = s.attempt.member("status")
    if isinstance(status, str):
        return status
    return next((m.to for m in lifecycle.moves if s.operation.id in m.by), None)


def _row(s: Situation, resource: str) -> Row | None:
    if resource == "Project":
        return project_of(s)
    if resource == "Plan":
        return s.store.plans.open(str(s.values.get("planId") or s.attempt.member("planId")).lower())
    return s.target
