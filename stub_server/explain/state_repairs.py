"""Repairs of requests that come at the wrong time: the calls that lead to a state in which they are accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from ..domain.lifecycle import path as way
from ..kernel.record import Row
from .attempt import Attempt, Change
from .reference_repairs import made, sold
from .rehearsal import Question
from .situation import TABLES, Situation

_TRIED = 4


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
    """What is to belong to an archived project belongs to another one. What belongs to one already cannot change."""
    if any(name in TABLES for name in s.values):
        return
    live = [row for row in s.newest(s.store.projects) if row.public["status"] != "archived"]
    for row in live[:_TRIED]:
        yield s.attempt.with_member(["projectId"], row.id, "This project is not archived.")
    if not live:
        yield from _with_project(s)


def _with_project(s: Situation) -> Iterator[Attempt]:
    """The attempt in a world that has an active project; the next refusal finds it there."""
    for _, call in made(s, s.store.projects):
        yield from s.after("There is no project that it could be about.", call)


def possible_move(s: Situation) -> Iterator[Attempt]:
    """A project's move: the calls that lead there, or no move."""
    project = s.target
    if project is None or "projectId" not in s.values:
        return
    lifecycle = s.stage.rules.lifecycles["Project"]
    sent = s.attempt.member("status")
    wanted = next((m.to for m in lifecycle.moves if s.operation.id in m.by), None) if sent is None else sent
    is_now = project.public["status"]
    between = way(lifecycle, is_now, str(wanted))[1:-1]
    if between:
        yield from s.after(f"From {is_now} it goes there in steps.", *_moves(s, project, between[-1]))
    if sent is not None:
        yield s.attempt.with_member(["status"], is_now, "It stays as it is.")


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
    """A plan in use keeps what its holders have bought."""
    fields = [entry["field"] for entry in s.answer.details]
    body, plan = s.attempt.body, s.target
    if not fields or not isinstance(body, dict) or plan is None:
        return
    if body.keys() - set(fields):
        yield s.attempt.without_members([f for f in fields if f in body], "It stays while there are subscribers.")
    kept = {f: plan.public[f] for f in fields if f in body}
    yield s.attempt.with_body({**body, **kept}, *(Change(f"body.{f}", body[f], kept[f], "It stays.") for f in kept))
