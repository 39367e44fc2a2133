"""A suspended project stops the clock of its subscriptions: nothing is due meanwhile, and all comes so much later."""

from __future__ import annotations

from ..contract.formats import date_time_ms
from ..kernel.record import Row
from . import billing
from .draft import Draft


def stands_still(draft: Draft, project_id: str) -> bool:
    """Whether a project is suspended: nothing is due for its subscriptions meanwhile."""
    project = draft.store.projects.peek(project_id)
    return project is not None and project["status"] in billing.states(draft, "Project", "paused")


def stopped_at(draft: Draft, project_id: str) -> int | None:
    """Since when (ms) nothing is due for the subscriptions of a project; None while it is not suspended."""
    project = draft.store.projects.open(project_id) if stands_still(draft, project_id) else None
    return None if project is None else int(project.hidden.get("suspended_at", draft.now))


def resume(draft: Draft, row: Row) -> None:
    """The project goes on: nobody loses time that was paid for."""
    project = draft.store.projects.open(row.public["projectId"])
    assert project is not None
    suspended = project.hidden.get("suspended_at", draft.now)  # a file of an earlier version does not say when
    since = max(suspended, date_time_ms(row.public["createdAt"]))
    billing.postpone(draft, row, draft.now - since)
