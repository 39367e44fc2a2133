"""Creates and changes customers, projects, plans, products, API keys and webhooks, with their events and timers."""

from __future__ import annotations

from ..contract.document import Move
from ..contract.formats import date_time_ms
from ..domain.api_keys import state
from ..kernel.record import NO_EXTRAS, Body, Extras, Record, Row, moved_from
from ..store.table import Table
from .billing import lifecycle
from .draft import Draft


def change(
    draft: Draft,
    table: Table,
    row: Row,
    public: Body,
    hidden: Body | None = None,
    project: str | None = None,
    extras: Extras = NO_EXTRAS,
) -> Record:
    """A record after an update. One that changes nothing raises no event and leaves the record as it is."""
    if row.equals(public, row.hidden if hidden is None else hidden):
        return row.record
    record = draft.update(table, row, public, hidden)
    draft.emit_change(table, record, "updated", project, extras)
    return record


def add_customer(draft: Draft, public: Body, project: str | None = None, made_by: str | None = None) -> Record:
    """A new customer; `project` is that of the order which brought them, `made_by` the restriction of the key."""
    hidden = {} if made_by is None else {"made_by": made_by}
    record = draft.create(draft.store.customers, public["id"], public, hidden)
    draft.emit_change(draft.store.customers, record, "created", project)
    return record


def add_project(draft: Draft, public: Body, hidden: Body) -> Record:
    """A new project."""
    record = draft.create(draft.store.projects, public["id"], public, hidden)
    moved = lifecycle(draft, "Project").beginnings.get(public["status"])
    draft.emit_move(draft.store.projects, record, moved, public["id"])
    return record


def move_project(draft: Draft, row: Row, moved: Move, reason: str | None = None) -> Record:
    """A project in its next state."""
    hidden = row.hidden | {"reason": reason}
    record = draft.update(draft.store.projects, row, row.public | {"status": moved.to}, hidden)
    project_moved(draft, record, moved)
    return record


def project_moved(draft: Draft, record: Record, moved: Move) -> None:
    """The events of a project's move, and the job that sees to its orders and subscriptions before anything else."""
    paused = lifecycle(draft, "Project").sets["paused"]
    if moved.to in paused:
        row = draft.open(draft.store.projects, record.id)
        assert row is not None  # it has just moved
        record = draft.update(draft.store.projects, row, row.public, row.hidden | {"suspended_at": draft.now})
    draft.emit_move(draft.store.projects, record, moved, record.id, moved_from(moved.from_, "reason"))
    if moved.from_ in paused:  # before it is closed: what the suspension owes is served first
        draft.at(draft.now, "project.reopen", record.id)
    if moved.to == "archived":
        draft.at(draft.now, "project.close", record.id)


def add_plan(draft: Draft, public: Body) -> Record:
    """A new plan."""
    return _add_to_project(draft, draft.store.plans, public)


def add_product(draft: Draft, public: Body) -> Record:
    """A new product."""
    return _add_to_project(draft, draft.store.products, public)


def _add_to_project(draft: Draft, table: Table, public: Body) -> Record:
    record = draft.create(table, public["id"], public, {})
    draft.emit_change(table, record, "created", public["projectId"])
    return record


def add_key(draft: Draft, public: Body, hidden: Body) -> None:
    """A new API key, and the timer that ends it."""
    record = draft.create(draft.store.api_keys, public["id"], public, hidden)
    draft.emit_move(draft.store.api_keys, record, lifecycle(draft, "ApiKey").beginnings.get(state(public, draft.now)))
    _expire_later(draft, public)


def change_key(draft: Draft, row: Row, public: Body, hidden: Body) -> Record:
    """An API key after an update."""
    before = state(row.public, draft.now)
    record = change(draft, draft.store.api_keys, row, public, hidden, extras=moved_from(before))
    if before == "active" and state(public, draft.now) == "expired":
        draft.emit_move(draft.store.api_keys, record, lifecycle(draft, "ApiKey").find("active", "expired"))
    if public["expires_at"] != row.public["expires_at"]:
        _expire_later(draft, public)
    return record


def _expire_later(draft: Draft, public: Body) -> None:
    """A key whose end is to come gets a timer."""
    if public["expires_at"] is not None and date_time_ms(public["expires_at"]) > draft.now:
        draft.at(date_time_ms(public["expires_at"]), "api_key.expire", public["id"])


def add_webhook(draft: Draft, public: Body, hidden: Body) -> Record:
    """A new webhook. It raises no event."""
    return draft.create(draft.store.webhooks, public["id"], public, hidden)
