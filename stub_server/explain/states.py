"""The states that rules ask for, and repairs that lead a record there by calls made first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from ..calls.call import CONTROL
from ..contract.document import Lifecycle
from ..domain.lifecycle import path as way
from ..domain.orders import DEFAULT_FAILURE
from ..domain.payments import can_be_late
from ..http.inside import Question
from ..kernel.record import Body, Row
from .attempt import TABLES, Attempt, Situation
from .mending import Change
from .record_repairs import made, sold

_NAMED = 4  # records that are named
_TRIED = 4  # records that are tried
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
        return _similar_records(s)
    asked = _moved(s) if code == "invalid_state_transition" else _STATES.get(code)
    row = None if asked is None else _row(s, asked.resource)
    if asked is None or row is None:
        return None
    lifecycle = s.copy.rules.lifecycles.get(asked.resource)
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


def _similar_records(s: Situation) -> Body | None:
    """The records that the path could have named: those whose ids are nearly the given one, else the newest."""
    name = next(iter(s.values), "")
    table = s.store.api_keys if name == "publicKey" else s.table(name)
    if table is None:
        return None
    field = "public_key" if name == "publicKey" else "id"
    rows = [row for row in s.like(table, s.values[name]) if field == "id" or row.public["is_active"]]
    needed = [row.public[field] for row in rows[:_NAMED]] or ["a record of the caller, who has none"]
    return _shown(table.spec.schema, s.values[name][:_LONGEST], field, None, needed, [])


def _shown(resource: str, ident: str, field: str, is_: object, needed: list[str], moves: list[str]) -> Body:
    return {"resource": resource, "id": ident, "field": field, "is": is_, "needed": needed, "moves": moves}


def _moved(s: Situation) -> _Asked | None:
    """The resource that was to move: the one of the path."""
    name = next((n for n in s.values if n in TABLES), "")
    table = s.table(name)
    lifecycle = None if table is None else s.copy.rules.lifecycles.get(table.spec.schema)
    return None if lifecycle is None else _Asked(lifecycle.resource, lifecycle.field, ())


def _wanted(s: Situation, lifecycle: Lifecycle) -> str | None:
    """The state that the body names, else the one that the operation leads to."""
    status = s.attempt.member("status")
    return status if isinstance(status, str) else next((m.to for m in lifecycle.moves if s.operation.id in m.by), None)


def _row(s: Situation, resource: str) -> Row | None:
    if resource == "Project":
        return project_of(s)
    if resource == "Plan":
        return s.store.plans.open(_plan_id(s))
    return s.target


# -- projects


def project_of(s: Situation) -> Row | None:
    """The project that a request is about: of the path, of the record in the path, or of the body."""
    ident = s.values.get("projectId") or s.attempt.member("projectId")
    target = s.target
    if target is not None and "projectId" in target.public:
        ident = target.public["projectId"]
    return None if ident is None else s.store.projects.open(str(ident).lower())


def active_project(s: Situation) -> Iterator[Attempt]:
    """An order for an inactive project: activate it, or order from another one."""
    project = project_of(s)
    if project is not None:
        yield from s.after("Only an active project takes orders.", *_moves(s, project, "active"))
    yield from another_offer(s)


def another_offer(s: Situation) -> Iterator[Attempt]:
    """The order for a plan and project that sell now."""
    if s.attempt.member("planId") is None:
        return
    active = [row for row in s.newest(s.store.projects) if row.public["status"] == "active"]
    offers = [(row, plans[0]) for row in active if (plans := sold(s, row.id))]
    for row, plan in offers:
        yield _at_offer(s.attempt, row.id, plan.id)
    if active and not offers:
        for ident, call in made(s, s.store.plans, projectId=active[0].id):
            for attempt in s.after("No active project has a plan.", call):
                yield _at_offer(attempt, active[0].id, ident)
    elif not active:
        yield from _with_project(s)


def _at_offer(attempt: Attempt, project_id: str, plan_id: str) -> Attempt:
    """The order for a plan of a project."""
    attempt = attempt.with_member(["projectId"], project_id, "This project is active.")
    return attempt.with_member(["planId"], plan_id, "It is a plan of that project.")


def live_project(s: Situation) -> Iterator[Attempt]:
    """Use a project that is not archived. A record that already belongs to an archived one cannot change."""
    if any(name in TABLES for name in s.values):
        return
    live = [row for row in s.newest(s.store.projects) if row.public["status"] != "archived"]
    for row in live[:_TRIED]:
        yield s.attempt.with_member(["projectId"], row.id, "This project is not archived.")
    if not live:
        yield from _with_project(s)


def _with_project(s: Situation) -> Iterator[Attempt]:
    """The attempt after a call that creates an active project, to which the next repair refers."""
    for _, call in made(s, s.store.projects):
        yield from s.after("There is no project that can be used.", call)


def possible_move(s: Situation) -> Iterator[Attempt]:
    """A project's move: the calls that lead there, or no move."""
    project = s.target
    if project is None or "projectId" not in s.values:
        return
    lifecycle = s.copy.rules.lifecycles["Project"]
    sent = s.attempt.member("status")
    wanted = next((m.to for m in lifecycle.moves if s.operation.id in m.by), None) if sent is None else sent
    is_now = project.public["status"]
    between = way(lifecycle, is_now, str(wanted))[1:-1]
    if between:
        yield from s.after(f"From {is_now} it needs several moves.", *_moves(s, project, between[-1]))
    if sent is not None:
        yield s.attempt.with_member(["status"], is_now, "The status stays as it is.")


def _moves(s: Situation, project: Row, to: str) -> list[Question | None]:
    """The calls that bring a project to a state; none that works where there is no way."""
    lifecycle = s.copy.rules.lifecycles["Project"]
    steps = way(lifecycle, project.public["status"], to)
    calls: list[Question | None] = []
    for from_, then in pairwise(steps):
        found = lifecycle.find(from_, then)
        action = next((name for name in (found.by if found else ()) if _takes_no_body(s, name)), "")
        calls.append(s.call(action, {"projectId": project.id}))
    return calls or [None]


def _takes_no_body(s: Situation, name: str) -> bool:
    operation = s.document.operations.get(name)
    return operation is not None and not operation.body_required


# -- plans


def _plan_id(s: Situation) -> str:
    return str(s.values.get("planId") or s.attempt.member("planId")).lower()


def changed_plan(
    changes: Callable[[Situation, Row], dict[str, Any]], why: str
) -> Callable[[Situation], Iterator[Attempt]]:
    """A repair that changes the plan first, or else names another plan of the project."""

    def repair(s: Situation) -> Iterator[Attempt]:
        plan = s.store.plans.open(_plan_id(s))
        if plan is None:
            return
        yield from s.after(why, s.call("updatePlan", {"planId": plan.id}, changes(s, plan)))
        for row in sold(s, plan.public["projectId"])[:_TRIED]:
            if row.id != plan.id:
                yield s.attempt.with_member(["planId"], row.id, "This plan can be bought.")
        yield from another_offer(s)

    return repair


activated_plan = changed_plan(lambda s, plan: {"status": "active"}, "An inactive plan takes no orders.")
roomier_plan = changed_plan(lambda s, plan: {"max_subscribers": None}, "All places of the plan are taken.")


_plan_with_method = changed_plan(
    lambda s, plan: {"payment_methods": [*plan.public["payment_methods"], s.attempt.member("paymentMethod") or "pix"]},
    "The plan does not accept this method yet.",
)


def possible_method(s: Situation) -> Iterator[Attempt]:
    """A method that the plan takes, or a plan that takes the method."""
    plan = s.store.plans.open(_plan_id(s))
    if plan is not None and s.operation.id == "createOrder":
        for method in plan.public["payment_methods"]:
            yield s.attempt.with_member(["paymentMethod"], method, "The plan accepts this method.")
    yield from _plan_with_method(s)


def unused_plan(s: Situation) -> Iterator[Attempt]:
    """A plan in use keeps what its holders have bought."""
    fields = [entry["field"] for entry in s.answer.details]
    body, plan = s.attempt.body, s.target
    if not fields or not isinstance(body, dict) or plan is None:
        return
    if body.keys() - set(fields):
        yield s.attempt.without_members([f for f in fields if f in body], "It is fixed while there are subscribers.")
    kept = {f: plan.public[f] for f in fields if f in body}
    yield s.attempt.with_body({**body, **kept}, *(Change(f"body.{f}", body[f], kept[f], "It stays.") for f in kept))


def payable_order(s: Situation) -> Iterator[Attempt]:
    """A payment without what does not fit the order."""
    if s.field in ("amount", "paid_at"):
        yield s.attempt.without_members([s.field], "Without it the payment fits the order.")
    if s.target is not None and can_be_late(s.target.public, s.copy.clock.now):
        yield s.attempt.with_member(["late"], True, "A boleto that has expired can be paid late.")


def refundable_order(s: Situation) -> Iterator[Attempt]:
    """An open order is paid first, and a dispute won."""
    target, lifecycle = s.target, s.copy.rules.lifecycles["Order"]
    if target is None:
        return
    path, status = f"{CONTROL}/orders/{target.id}", target.public["status"]
    if status in lifecycle.sets["payable"]:
        yield from s.after("Only a paid order is refunded.", Question("POST", f"{path}/pay", "", {}, b""))
    elif "resolve_dispute" in lifecycle.controls(status):
        headers = {"content-type": "application/json"}
        call = Question("POST", f"{path}/dispute/resolve", "", headers, b'{"outcome":"won"}')
        yield from s.after("A disputed order is refunded once the dispute is won.", call)


def smaller_refund(s: Situation) -> Iterator[Attempt]:
    """What is left is refunded."""
    yield s.attempt.without_members(["amount"], "Without an amount all that is left is refunded.")


def failure_of_method(s: Situation) -> Iterator[Attempt]:
    """A failure that payments of the order's method can have."""
    target = s.target
    if target is not None:
        code = DEFAULT_FAILURE[target.public["paymentMethod"]]
        yield s.attempt.with_member(["code"], code, "Payments of this method fail with it.")
