"""Simulates what time or a customer does to a subscription: cancel, resume, renew, expire."""

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...domain.lifecycle import refused
from ...domain.subscriptions import has_dispute
from ...engine import billing, renewals
from ...kernel.problem import Conflict
from ...kernel.record import Body, Row


def cancel_subscription(call: Call, ident: str, body: Body | None) -> Reply:
    row = _open(call, ident)
    status = row.public["status"]
    if not (body or {}).get("at_period_end", False):
        billing.end_subscription(call.draft, row, "canceled")
        return _shown(call, ident, None)
    if not billing.is_running(call.draft, row) and status != "canceled":
        raise refused(call.lifecycle("Subscription"), status, "canceled")
    if status != "canceled" and not row.public["cancel_at_period_end"]:
        billing.end_later(call.draft, row)
    return _shown(call, ident, None)


def resume_subscription(call: Call, ident: str) -> Reply:
    """Its renewal order follows at once if it is time for one."""
    row = _open(call, ident)
    if not row.public["cancel_at_period_end"] or not billing.is_running(call.draft, row):
        message = "The subscription is not set to be canceled at the end of its period."
        raise Conflict.at("cancel_at_period_end", message, where="path")
    _check_project_open(call, row)
    renewals.resume(call.draft, row)
    return _shown(call, ident, None)


def renew_subscription(call: Call, ident: str) -> Reply:
    """The renewal order is paid, and made if none is open."""
    row, draft = _open(call, ident), call.draft
    if row.public["status"] not in draft.states("Subscription", "renewable"):
        raise refused(call.lifecycle("Subscription"), row.public["status"], "active")
    _check_project_open(call, row)
    if renewals.is_suspended(draft, row.public["projectId"]):
        message = "The project is suspended: nothing is renewed until it is active again."
        raise Conflict.at("projectId", message, "project_not_active")
    if has_dispute(row.hidden):
        message = "An order of the subscription is disputed: nothing is renewed until the dispute is resolved."
        raise Conflict.at("status", message, where="path")
    order_id = row.hidden["renewal_order"]
    order = None if order_id is None else draft.open(call.store.orders, order_id)
    if order is None or not billing.is_payable(draft, order):
        order_id = renewals.renewal_order(draft, row).id
        order = draft.open(call.store.orders, order_id)
        assert order is not None
    if billing.is_payable(draft, order):  # a magic e-mail may have failed it at once
        billing.pay(draft, order)
    return _shown(call, ident, order_id)


def expire_subscription(call: Call, ident: str) -> Reply:
    row = _open(call, ident)
    if row.public["status"] == "expired":
        return _shown(call, ident, None)
    if row.public["status"] != "past_due":
        raise refused(call.lifecycle("Subscription"), row.public["status"], "expired")
    billing.end_subscription(call.draft, row, "expired")
    return _shown(call, ident, row.hidden["renewal_order"])


def _check_project_open(call: Call, row: Row) -> None:
    """Raises Conflict if the project of a subscription is archived."""
    if not billing.is_project_open(call.draft, row.public["projectId"]):
        message = "The project is archived: its subscriptions end with their periods."
        raise Conflict.at("projectId", message, "project_archived", where="path")


def _open(call: Call, ident: str) -> Row:
    return call.open_of_any("subscriptions", ident, "subscription")


def _shown(call: Call, ident: str, order_id: str | None) -> Reply:
    row = call.draft.open(call.store.subscriptions, ident)
    assert row is not None  # subscriptions are never deleted
    order = None if order_id is None else call.draft.open(call.store.orders, order_id)
    subscription = call.store.shown_row(call.store.subscriptions, row)
    return reply.value({"subscription": subscription, "order": None if order is None else order.public})
