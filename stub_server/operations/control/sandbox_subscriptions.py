"""Simulates what time or a customer does to a subscription: cancel, resume, renew, expire."""

from ...core.problem import Conflict
from ...core.record import Body, Row
from ...domain.lifecycle import refused
from ...domain.subscriptions import has_dispute
from ...engine import billing, renewals
from ...server.work import Work
from .named import open_named


def cancel_subscription(work: Work, ident: str, body: Body) -> Body:
    row = _open(work, ident)
    status = row.status
    if not body.get("at_period_end", False):
        billing.end_subscription(work.draft, row, "canceled")
        return _shown(work, row.id)
    if not work.draft.is_in(row, "running") and status != "canceled":
        raise refused(work.lifecycle("Subscription"), status, "canceled")
    if status != "canceled" and not row["cancel_at_period_end"]:
        billing.end_later(work.draft, row)
    return _shown(work, row.id)


def resume_subscription(work: Work, ident: str) -> Body:
    """Its renewal order follows at once if it is time for one."""
    row = _open(work, ident)
    if not row["cancel_at_period_end"] or not work.draft.is_in(row, "running"):
        message = "The subscription is not set to be canceled at the end of its period."
        raise Conflict.at("cancel_at_period_end", message, where="path")
    _check_project_open(work, row)
    renewals.resume(work.draft, row)
    return _shown(work, row.id)


def renew_subscription(work: Work, ident: str) -> Body:
    """The renewal order is paid, and made if none is open."""
    row, draft = _open(work, ident), work.draft
    if not draft.is_in(row, "renewable"):
        raise refused(work.lifecycle("Subscription"), row.status, "active")
    _check_project_open(work, row)
    if billing.is_project(draft, row, "paused"):
        message = "The project is suspended: nothing is renewed until it is active again."
        raise Conflict.at("projectId", message, "project_not_active")
    if has_dispute(row):
        message = (
            "An order of the subscription is disputed: nothing is renewed until the dispute is"
            " resolved."
        )
        raise Conflict.at("status", message, where="path")
    order = draft.open("orders", row["renewal_order"])
    if order is None or not draft.is_in(order, "payable"):
        order = renewals.renewal_order(draft, row)
    if draft.is_in(order, "payable"):  # a magic e-mail may have failed it at once
        billing.pay(draft, order)
    return _shown(work, row.id, order.id)


def expire_subscription(work: Work, ident: str) -> Body:
    row = _open(work, ident)
    billing.end_subscription(work.draft, row, "expired")
    return _shown(work, row.id, row["renewal_order"])


def _check_project_open(work: Work, row: Row) -> None:
    """Raises Conflict if the project of a subscription is archived."""
    if not billing.is_project(work.draft, row, "open"):
        raise Conflict.at(
            "projectId",
            "The project is archived: its subscriptions end with their periods.",
            "project_archived",
            where="path",
        )


def _open(work: Work, ident: str) -> Row:
    return open_named(work, "subscriptions", ident, "subscription")


def _shown(work: Work, ident: str, order_id: str | None = None) -> Body:
    row = work.draft.get("subscriptions", ident)
    order = work.draft.open("orders", order_id)
    return {"subscription": work.store.shown_row(row), "order": order and order.public}
