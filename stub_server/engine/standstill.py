"""A paused project stops the clock of its subscriptions: nothing is due meanwhile, and all is looked at afterwards."""

from __future__ import annotations

from ..domain import subscriptions
from ..kernel.record import Row
from . import billing
from .draft import Draft


def stands_still(draft: Draft, row: Row) -> bool:
    """Whether a subscription's project is paused: nothing is due for it meanwhile."""
    return _is_in(draft, row, "paused")


def _is_in(draft: Draft, row: Row, name: str) -> bool:
    """Whether the project of a subscription is in one of the contract's sets of states."""
    project = draft.store.projects.peek(row.public["projectId"])
    return project is not None and project["status"] in billing.states(draft, "Project", name)


def resume(draft: Draft, row: Row) -> None:
    """The project does not stand still any more: what would have happened to a subscription meanwhile is seen to.

    One whose period is over is billed now, payable until now and the grace; what is paid then begins now.
    """
    table = draft.store.subscriptions
    if row.public["status"] == "trialing" and row.hidden["anchor"] <= draft.now:
        billing.activate_subscription(draft, row)
        row = draft.open(table, row.id) or row
    if row.public["status"] == "active":
        if subscriptions.period_end(row.public, row.hidden) > draft.now:
            if len(row.hidden["paid_by"]) > 1 and subscriptions.running_end(row.public, row.hidden) <= draft.now:
                billing.roll(draft, row)
            billing.schedule(draft, row.id, row.public, row.hidden)
            return
        if row.public["cancel_at_period_end"]:
            billing.end_subscription(draft, row, "canceled")
            return
        billing.fall_past_due(draft, row)
        row = draft.open(table, row.id) or row
    if row.public["status"] == "past_due" and _is_in(draft, row, "selling"):  # an archived project lets it go instead
        _bill_anew(draft, row)


def _bill_anew(draft: Draft, row: Row) -> None:
    """A past due subscription is billed for a period that begins now; its bill from before is called off."""
    billing.call_off_bill(draft, row)
    hidden = subscriptions.restarted(row.hidden, draft.now)
    draft.update(draft.store.subscriptions, row, row.public, hidden)
    again = draft.open(draft.store.subscriptions, row.id)
    assert again is not None
    billing.renewal_due(draft, again)
    draft.at(subscriptions.grace_end(row.public, hidden), "subscription.expire", row.id)  # after its bill
