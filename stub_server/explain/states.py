"""What state a record is in that a rule does not allow, which it would need, and how it gets there."""

from __future__ import annotations

from typing import NamedTuple

from ..contract.document import Lifecycle
from ..kernel.record import Body, Row
from .situation import TABLES, Situation
from .state_repairs import project_of


class _Asked(NamedTuple):
    """The resource, its field, and the set of its lifecycle, or the values, that a rule asks for."""

    resource: str
    field: str
    needed: str | tuple[str, ...]


_STATES = {
    "order_already_paid": _Asked("Order", "status", "payable"),
    "order_not_payable": _Asked("Order", "status", "payable"),
    "order_not_refundable": _Asked("Order", "status", ("paid",)),
    "project_not_active": _Asked("Project", "status", "selling"),
    "project_archived": _Asked("Project", "status", "open"),
    "plan_not_active": _Asked("Plan", "status", ("active",)),
    "plan_sold_out": _Asked("Plan", "max_subscribers", ()),
    "payment_method_not_allowed": _Asked("Plan", "payment_methods", ()),
    "log_not_retryable": _Asked("WebhookLogEntry", "status", ()),
    "api_key_expired": _Asked("ApiKey", "expires_at", ()),
}


def state_of(s: Situation, code: str) -> Body | None:
    """The state behind a refusal, as it is now; None where no record's state is behind it."""
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
            needed = list(dict.fromkeys(m.from_ for m in lifecycle.moves if m.to == wanted and m.from_ != "new"))
        moves = [f"{m.to} ({' or '.join(m.by)})" for m in lifecycle.exits(is_) if m.to != is_]
    return {"resource": asked.resource, "id": row.id, "field": asked.field, "is": is_, "needed": needed, "moves": moves}


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
