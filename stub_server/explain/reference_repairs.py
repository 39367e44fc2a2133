"""Repairs of requests that name records which do not exist: one that does, or one that a call before makes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..kernel.ids import Cutter
from ..kernel.record import Row
from ..store.table import Table
from . import free
from .attempt import Attempt
from .contract_repairs import example_of
from .mending import Mending, Unmendable
from .rehearsal import Question
from .situation import LOOKED_AT, Situation

_TRIED = 4  # records
_MAKERS = {
    "projects": "createProject",
    "plans": "createPlan",
    "products": "createProduct",
    "customers": "createCustomer",
    "webhooks": "createWebhook",
    "api_keys": "createApiKey",
}
"""The operations whose first new id is that of the record which they make."""
_ITEM = re.compile(r"([A-Za-z_]+)\[[0-9]+\]").fullmatch
_REFERENCE = "No such record exists; this one fits."


def another_reference(s: Situation) -> Iterator[Attempt]:
    """409 `reference_not_found`: a record that exists where the body refers to none."""
    item = _ITEM(s.field)
    name = item[1] if item is not None else s.field
    if item is not None:
        yield from _items(s, name)
    elif name == "planId":
        yield from _plans(s)
    elif name == "projectId":
        yield from _projects(s)


def _items(s: Situation, name: str) -> Iterator[Attempt]:
    """A list of ids without those that do not exist; where none is left, with one that does."""
    table = s.store.plans if name == "planIds" else s.store.projects
    project_id = None
    if table is s.store.plans:
        target = s.target
        project_id = str(s.attempt.member("projectId") or (target and target.public["projectId"])).lower()

    def exists(ident: str) -> bool:
        row = table.peek(ident.lower())
        return row is not None and project_id in (None, row.get("projectId"))

    listed = list(s.attempt.member(name) or ())
    kept = [ident for ident in listed if exists(ident)]
    others = s.newest(table, 1) if project_id is None else s.newest(table, 1, projectId=project_id)
    if not kept and others:
        yield s.attempt.with_member([name], [others[0].id], _REFERENCE)
    yield s.attempt.with_member([name], kept, "Of these, the records exist.")


def _projects(s: Situation) -> Iterator[Attempt]:
    """The project of the plan that the body names, else a live one, with plans where a plan is needed."""
    for row in buyable_projects(s)[:_TRIED]:
        yield s.attempt.with_member(["projectId"], row.id, _REFERENCE)
    for ident, call in made(s, s.store.projects):
        for attempt in s.after("No project exists.", call):
            yield attempt.with_member(["projectId"], ident, _REFERENCE)


def _plans(s: Situation) -> Iterator[Attempt]:
    """A plan of the project, else of another one."""
    project_id = str(s.attempt.member("projectId")).lower()
    for row in sold(s, project_id)[:_TRIED]:
        yield s.attempt.with_member(["planId"], row.id, _REFERENCE)
    known = s.store.plans.open(str(s.attempt.member("planId")).lower())
    if known is not None:
        yield s.attempt.with_member(["projectId"], known.public["projectId"], "It is the project of the plan.")
    for ident, call in made(s, s.store.plans, projectId=project_id):
        for attempt in s.after("The project has no plan that is sold.", call):
            yield attempt.with_member(["planId"], ident, _REFERENCE)


def buyable_projects(s: Situation) -> list[Row]:
    """Live projects, first the one of the plan that the body names, then those that sell."""
    plan = s.store.plans.peek(str(s.attempt.member("planId")).lower())
    rows = [row for row in s.newest(s.store.projects) if row.public["status"] != "archived"]
    needs_plan = s.attempt.member("planId") is not None

    def rank(row: Row) -> tuple[bool, bool, bool]:
        is_its_own = plan is not None and plan["projectId"] == row.id
        return not is_its_own, row.public["status"] != "active", needs_plan and not sold(s, row.id)

    return sorted(rows, key=rank)


def sold(s: Situation, project_id: str) -> list[Row]:
    """The plans of a project, first those that can be bought as the body asks."""
    method = s.attempt.member("paymentMethod") or "pix"

    def rank(row: Row) -> tuple[bool, bool, bool, bool]:
        plan = row.public
        return (
            plan["status"] != "active",
            method not in plan["payment_methods"],
            plan["amount"] != s.attempt.member("totalAmount"),
            plan["max_subscribers"] is not None,
        )

    return sorted(s.newest(s.store.plans, projectId=project_id), key=rank)


def made(s: Situation, table: Table, **given: Any) -> Iterable[tuple[str, Question]]:
    """A call that makes a record, and the id that it will have: ids follow from the world's position."""
    operation = s.document.operations.get(_MAKERS.get(table.name, ""))
    if operation is None:
        return
    example = example_of(operation, s.mender.resolve)
    body = {**(example if isinstance(example, dict) else {}), **given}
    try:
        body = Mending(s.mender, s.now, {}).mend(operation.body, body, "body", example)
    except Unmendable:
        return
    if "projectId" in body and "projectId" not in given:
        projects = s.newest(s.store.projects, LOOKED_AT)
        if table.name == "webhooks":
            del body["projectId"]
        elif projects:
            body["projectId"] = projects[0].id
    call = s.call(operation.id, {}, _unlike_others(s, table, body))
    if call is not None:
        yield Cutter(s.stage.ids).uuid(), call


def _unlike_others(s: Situation, table: Table, body: dict[str, Any]) -> dict[str, Any]:
    """The body of a new record with values that no other one has, and without references that it can do without."""
    store, project_id = s.store, body.get("projectId")
    if table.name == "projects":
        return {**body, "status": "active", "name": free.name(store, body["name"], None)}
    if table.name == "plans":
        return {**body, "name": free.name(store, body["name"], project_id)}
    if table.name == "customers":
        return {**body, "document": free.document(store, body["document"])}
    if table.name == "webhooks":
        return {**body, "url": free.address(store, body["url"], project_id)}
    return {name: value for name, value in body.items() if name not in ("planIds", "sku")}
