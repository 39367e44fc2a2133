"""Repairs of requests that come at the wrong time: the calls that lead to a state in which they are accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from ..domain.lifecycle import path as way
from ..http.rehearsal import Question
from ..kernel.record import Row
from .attempt import Attempt, Change
from .control_repairs import in_a_fitting_state
from .reference_repairs import made, sold
from .routes import filled
from .situation import TABLES, Situation

_TRIED = 4
_MOST_HOLDERS = 10  # orders and subscriptions that are ended first; with more of them another record is meant


# -- projects


def project_of(s: Situation) -> Row | None:
    """The project that a request is about: of the path, of the record in the path, or of the body."""
    ident = s.values.get("projectId") or s.attempt.member("projectId")
    target = s.target
    if target is not None and "projectId" in target.public:
        ident = target.public["projectId"]
    return None if ident is None else s.store.projects.open(str(ident).lower())


def active_project(s: Situation) -> Iterator[Attempt]:
    """An order for a project that sells nothing now: it is activated, or another one is meant."""
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
    """What belongs to an archived project cannot change: another record, of a live one."""
    live = [row for row in s.newest(s.store.projects) if row.public["status"] != "archived"]
    name = next((n for n in s.values if n in TABLES), None)
    if name is None:
        for row in live[:_TRIED]:
            yield s.attempt.with_member(["projectId"], row.id, "This project is not archived.")
        if not live:
            yield from _with_project(s)
        return
    why = "It is of a project that is not archived."
    table = s.table(name)
    assert table is not None
    for row in live:
        rows = [row] if table is s.store.projects else s.newest(table, _TRIED, projectId=row.id)
        yield from s.at_others(rows[:_TRIED], why)
    if live:
        for ident, call in made(s, table, projectId=live[0].id):
            for attempt in s.after(why, call):
                yield attempt.asking(
                    Change(f"path.{name}", s.values[name], ident, why),
                    path=filled(s.operation.path, {**s.values, name: ident}),
                )
    else:
        yield from _with_project(s)


def _with_project(s: Situation) -> Iterator[Attempt]:
    """The attempt in a world that has an active project; the next refusal finds it there."""
    for _, call in made(s, s.store.projects):
        yield from s.after("There is no project that it could be about.", call)


def possible_move(s: Situation) -> Iterator[Attempt]:
    """A project's move: the calls that lead there, another state, or a project that can take it."""
    if "projectId" not in s.values:
        yield from in_a_fitting_state(s)
        return
    project = s.target
    lifecycle = s.stage.rules.lifecycles["Project"]
    if project is None:
        return
    wanted = s.attempt.member("status")
    if wanted is None:
        wanted = next((m.to for m in lifecycle.moves if s.operation.id in m.by), None)
    is_now = project.public["status"]
    between = way(lifecycle, is_now, str(wanted))[1:-1]
    if between:
        yield from s.after(f"From {is_now} it goes there in steps.", *_moves(s, project, between[-1]))
    if s.attempt.member("status") is not None:
        for move in lifecycle.exits(is_now):
            if s.operation.id in move.by:
                yield s.attempt.with_member(["status"], move.to, f"From {is_now} a project goes there.")
    reach = {wanted, *(move.from_ for move in lifecycle.moves if move.to == wanted)}
    fitting = [row for row in s.newest(s.store.projects) if row.public["status"] in reach]
    yield from s.at_others(fitting[:_TRIED], "This project can go there.")
    if not fitting:
        for _, call in made(s, s.store.projects):
            yield from s.after("There is no project that can go there.", call)
    if s.attempt.member("status") is not None:
        yield s.attempt.with_member(["status"], is_now, "It stays as it is.")


def idle_project(s: Situation) -> Iterator[Attempt]:
    """A project with orders or subscriptions is not deleted: they are ended first, or another one is meant."""
    ident = s.values["projectId"].lower()
    yield from _ended(s, "projectId", ident, and_paid=True)
    others = [
        row for row in s.newest(s.store.projects) if row.id != ident and not s.store.orders.count("projectId", row.id)
    ]
    yield from s.at_others(others[:_TRIED], "This project has neither orders nor subscriptions.")
    archive = s.document.operations.get("archiveProject")
    if archive is not None:
        path = archive.path.replace("{projectId}", ident)
        why = "A project with activity is archived instead."
        asked = s.attempt.question
        changes = Change("method", asked.method, archive.method, why), Change("path", asked.path, path, why)
        yield s.attempt.asking(*changes, method=archive.method, path=path)


def _moves(s: Situation, project: Row, to: str) -> list[Question | None]:
    """The calls that bring a project to a state; none that works where there is no way."""
    lifecycle = s.stage.rules.lifecycles["Project"]
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
    """A repair that changes the plan first, or else means another plan of the project."""

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


def _with_method(s: Situation, plan: Row) -> dict[str, Any]:
    method = s.attempt.member("paymentMethod") or "pix"
    return {"payment_methods": [*plan.public["payment_methods"], method]}


_plan_with_method = changed_plan(_with_method, "The plan does not take this method yet.")


def possible_method(s: Situation) -> Iterator[Attempt]:
    """A method that the plan takes, or a plan that takes the method."""
    plan = s.store.plans.open(_plan_id(s))
    if plan is not None and s.operation.id == "createOrder":
        for method in plan.public["payment_methods"]:
            yield s.attempt.with_member(["paymentMethod"], method, "The plan takes this method.")
    yield from _plan_with_method(s)


def unused_plan(s: Situation) -> Iterator[Attempt]:
    """A plan in use keeps price and interval, and is not deleted: its holders are ended first, or another is meant."""
    ident = s.values["planId"].lower()
    fields = [entry["field"] for entry in s.answer.details]
    body = s.attempt.body
    if fields and isinstance(body, dict) and body.keys() - set(fields):
        yield s.attempt.without_members(
            [f for f in fields if f in body], "Price and interval stay while there are subscribers."
        )
    yield from _ended(s, "planId", ident, and_paid=False)
    orders, running = s.store.orders.count, s.store.running
    others = [row for row in s.newest(s.store.plans) if not orders("planId", row.id) and not running("planId", row.id)]
    yield from s.at_others(others[:_TRIED], "This plan has neither subscribers nor open orders.")
    if fields and isinstance(body, dict):
        plan = s.target
        kept = {f: plan.public[f] for f in fields if f in body} if plan is not None else {}
        yield s.attempt.with_body({**body, **kept}, *(Change(f"body.{f}", body[f], kept[f], "It stays.") for f in kept))
    if not others:
        target = s.target
        project_id = target.public["projectId"] if target is not None else ""
        for new, call in made(s, s.store.plans, projectId=project_id):
            why = "Every plan is in use; this one is new."
            for attempt in s.after(why, call):
                path = filled(s.operation.path, {**s.values, "planId": new})
                yield attempt.asking(Change("path.planId", s.values["planId"], new, why), path=path)


def _ended(s: Situation, index: str, ident: str, *, and_paid: bool) -> Iterator[Attempt]:
    """The calls that end what a plan or project has: subscriptions and open orders, and refunds where they matter."""
    store = s.store
    lifecycle = s.stage.rules.lifecycles
    calls: list[Question] = []
    for state in lifecycle["Subscription"].sets["running"]:
        rows = s.newest(store.subscriptions, _MOST_HOLDERS + 1, **{index: ident, "status": state})
        calls += [_control(f"/subscriptions/{row.id}/cancel") for row in rows]
    for state, action in (("paid", "refund"), ("pending", "cancel")):
        if state == "pending" or and_paid:
            rows = s.newest(store.orders, _MOST_HOLDERS + 1, **{index: ident, "status": state})
            first = [row for row in rows if state == "paid" or row.hidden["subscriptionId"] is None]
            calls += [_control(f"/orders/{row.id}/{action}") for row in first]  # a renewal goes with its subscription
    if 0 < len(calls) <= _MOST_HOLDERS:
        yield from s.after("What uses it is ended first.", *calls)


def _control(path: str) -> Question:
    return Question("POST", f"/_sandbox{path}", "", {}, b"")
