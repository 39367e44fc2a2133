"""Creates and changes customers, projects, plans, products, API keys and webhooks, with their
events and timers.
"""

from ..contract.lifecycles import Move
from ..core.clock import parse_iso
from ..core.record import NO_EXTRAS, Extras, Row, moved_from
from ..domain.api_keys import state
from .draft import Draft

CLEARING_PROJECT = "project.clear"
CLEARING_PLAN = "plan.clear"
MOST_DROPPED = 200  # records of one step
MOST_CLEARED = 50


def change(draft: Draft, row: Row, extras: Extras = NO_EXTRAS) -> Row:
    """A record that an update has changed.

    One that changes nothing raises no event and leaves the record as it is.
    """
    if not row.differs:
        return row
    changed = draft.put(row)
    draft.emit_change(changed, "updated", extras)
    return changed


def add(draft: Draft, new: Row, project: str | None = None) -> Row:
    """A new customer, plan or product. `project` is that of the order which brought a customer."""
    row = draft.put(new)
    draft.emit_change(row, "created", project=project)
    return row


def change_project(draft: Draft, row: Row, moved: Move | None, reason: str | None = None) -> Row:
    """A project that an update has changed, and in another state if it moves; a job then sees to
    its orders and subscriptions before anything else.
    """
    if moved is None:
        return change(draft, row, moved_from(row.status))
    paused = draft.states("Project", "paused")
    project = row.changed({"status": moved.to}, {"reason": reason})
    if moved.to in paused:
        project = project.keeping({"suspended_at": draft.now})
    project = draft.put(project)
    if row.differs:
        draft.emit_change(project, "updated", moved_from(row.status))
    draft.emit_move(project, moved, "reason")
    # before it is closed: what the suspension owes comes first
    if moved.from_ in paused:
        draft.at(draft.now, "project.reopen", row.id)
    if moved.to == "archived":
        draft.at(draft.now, "project.close", row.id)
    return project


def clear_project(draft: Draft, project_id: str) -> None:
    """Drop the plans and products of a project that is deleted, of many some now and the others at
    once.
    """
    for table in (draft.store.plans, draft.store.products):
        rows = table.rows_of("projectId", project_id)
        for row in draft.some(rows, CLEARING_PROJECT, project_id, MOST_DROPPED):
            draft.drop(row)


def clear_plan(draft: Draft, plan_id: str) -> None:
    """Take a plan that is deleted out of products, of many some now and the others at once."""
    rows = draft.store.products.rows_of("plans", plan_id)
    for row in draft.some(rows, CLEARING_PLAN, plan_id, MOST_CLEARED):
        draft.put(row.changed({"planIds": [ident for ident in row["planIds"] if ident != plan_id]}))


def add_key(draft: Draft, new: Row) -> None:
    """A new API key, and the timer that ends it."""
    row = draft.put(new)
    key_moved(draft, row, "new", state(row, draft.now))
    _expire_later(draft, row)


def change_key(draft: Draft, row: Row) -> Row:
    """An API key that an update has changed."""
    was = row.before or row
    before = state(was, draft.now)
    key = change(draft, row, moved_from(before))
    if before == "active" and state(row, draft.now) == "expired":
        key_moved(draft, key, "active", "expired")
    if row["expires_at"] != was["expires_at"]:
        _expire_later(draft, row)
    return key


def drop_key(draft: Draft, row: Row) -> None:
    """An API key is deleted."""
    key_moved(draft, row, state(row, draft.now), "deleted")
    draft.drop(row)


def key_moved(draft: Draft, row: Row, from_: str, to: str) -> None:
    """The events of an API key's move."""
    draft.emit_move(row, draft.lifecycle("ApiKey").find(from_, to))


def _expire_later(draft: Draft, row: Row) -> None:
    """A key whose end is to come gets a timer."""
    if row["expires_at"] is not None and parse_iso(row["expires_at"]) > draft.now:
        draft.at(parse_iso(row["expires_at"]), "api_key.expire", row.id)
