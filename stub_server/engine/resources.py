"""Creates and changes customers, projects, plans, products, API keys and webhooks, with their
events and timers.
"""

from ..contract.lifecycles import Move
from ..core.clock import iso, parse_iso
from ..core.record import NO_EXTRAS, Body, Extras, Record, Row, moved_from
from ..domain.api_keys import state
from .draft import Draft
from .tables.table import Table

CLEARING_PROJECT, CLEARING_PLAN = "project.clear", "plan.clear"
MOST_DROPPED, MOST_CLEARED = 200, 50  # records of one step


def change(
    draft: Draft,
    table: Table,
    row: Row,
    public: Body,
    hidden: Body | None = None,
    *,
    extras: Extras = NO_EXTRAS,
) -> Record:
    """A record after an update.

    One that changes nothing raises no event and leaves the record as it is.
    """
    if row.equals(public, row.hidden if hidden is None else hidden):
        return row.record
    record = draft.update(table, row, public, hidden)
    draft.emit_change(table, record, "updated", public.get("projectId"), extras)
    return record


def add(
    draft: Draft, name: str, public: Body, hidden: Body | None = None, project: str | None = None
) -> Record:
    """A new customer, plan or product. `project` is that of the order which brought a customer."""
    table = draft.store.tables[name]
    record = draft.create(table, public["id"], public, hidden or {})
    draft.emit_change(table, record, "created", public.get("projectId", project))
    return record


def add_project(draft: Draft, public: Body, hidden: Body) -> Record:
    """A new project."""
    record = draft.create(draft.store.projects, public["id"], public, hidden)
    moved = draft.lifecycle("Project").find("new", public["status"])
    draft.emit_move(draft.store.projects, record, moved, public["id"])
    return record


def move_project(draft: Draft, row: Row, moved: Move, reason: str | None = None) -> Record:
    """A project in its next state."""
    hidden = hidden_after(draft, row.hidden, moved, reason)
    record = draft.update(draft.store.projects, row, row.public | {"status": moved.to}, hidden)
    project_moved(draft, record, moved)
    return record


def hidden_after(draft: Draft, hidden: Body, moved: Move, reason: str | None = None) -> Body:
    """The hidden part of a project after a move."""
    hidden = hidden | {"reason": reason}
    if moved.to in draft.states("Project", "paused"):
        hidden |= {"suspended_at": draft.now}
    return hidden


def project_moved(draft: Draft, record: Record, moved: Move) -> None:
    """The events of a project's move, and the job that sees to its orders and subscriptions before
    anything else.
    """
    draft.emit_move(draft.store.projects, record, moved, record.id, "reason")
    # before it is closed: what the suspension owes comes first
    if moved.from_ in draft.states("Project", "paused"):
        draft.at(draft.now, "project.reopen", record.id)
    if moved.to == "archived":
        draft.at(draft.now, "project.close", record.id)


def clear_project(draft: Draft, project_id: str) -> None:
    """Drop the plans and products of a project that is deleted, of many some now and the others at
    once.
    """
    for table in (draft.store.plans, draft.store.products):
        rows = table.rows_of("projectId", project_id)
        for row in draft.some(rows, CLEARING_PROJECT, project_id, MOST_DROPPED):
            draft.drop(table, row)


def clear_plan(draft: Draft, plan_id: str) -> None:
    """Take a plan that is deleted out of products, of many some now and the others at once."""
    table = draft.store.products
    rows = table.rows_of("plans", plan_id)
    for row in draft.some(rows, CLEARING_PLAN, plan_id, MOST_CLEARED):
        left = [ident for ident in row.public["planIds"] if ident != plan_id]
        draft.update(table, row, row.public | {"planIds": left, "updatedAt": iso(draft.now)})


def add_key(draft: Draft, public: Body, hidden: Body) -> None:
    """A new API key, and the timer that ends it."""
    record = draft.create(draft.store.api_keys, public["id"], public, hidden)
    key_moved(draft, record, "new", state(public, draft.now))
    _expire_later(draft, public)


def change_key(draft: Draft, row: Row, public: Body, hidden: Body) -> Record:
    """An API key after an update."""
    before = state(row.public, draft.now)
    record = change(draft, draft.store.api_keys, row, public, hidden, extras=moved_from(before))
    if before == "active" and state(public, draft.now) == "expired":
        key_moved(draft, record, "active", "expired")
    if public["expires_at"] != row.public["expires_at"]:
        _expire_later(draft, public)
    return record


def drop_key(draft: Draft, row: Row) -> None:
    """An API key is deleted."""
    key_moved(draft, row.record, state(row.public, draft.now), "deleted")
    draft.drop(draft.store.api_keys, row)


def key_moved(draft: Draft, record: Record, from_: str, to: str) -> None:
    """The events of an API key's move."""
    draft.emit_move(draft.store.api_keys, record, draft.lifecycle("ApiKey").find(from_, to))


def _expire_later(draft: Draft, public: Body) -> None:
    """A key whose end is to come gets a timer."""
    if public["expires_at"] is not None and parse_iso(public["expires_at"]) > draft.now:
        draft.at(parse_iso(public["expires_at"]), "api_key.expire", public["id"])
