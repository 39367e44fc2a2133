"""Subscriptions: running memberships.

Paid orders open them and time changes them; the API only lists them.
"""

from ..contract.formats import end_of_range
from ..core.clock import iso_or_none
from ..core.record import Body
from ..core.slices import Sliced
from ..engine.tables.specs import LAST, searched
from ..engine.tables.table import Table
from ..server.lists import listed, query_of
from ..server.reply import Reply
from ..server.work import Work

_HANDLED = ("id", "orderId", "search", "next_billing_since", "next_billing_until")


async def list_subscriptions(work: Work, query: Body) -> Reply:
    found = query_of(work, "subscriptions", query, handled=_HANDLED)
    if "next_billing_since" in query or "next_billing_until" in query:
        low = iso_or_none(end_of_range(query, "next_billing_since"))
        high = iso_or_none(end_of_range(query, "next_billing_until"))
        found.between = ("next_billing_at", low, high or LAST)
    if "orderId" in query:
        order = work.store.orders.open(query["orderId"].lower())
        found.only("id", None if order is None else order["subscriptionId"])
    if "id" in query:
        found.only("id", query["id"].lower())
    if "search" in query:
        found.only("id", *await _searched(work, query["search"]))
    return await listed(work, "subscriptions", found, "Subscriptions retrieved.")


async def _searched(work: Work, wanted: str) -> list[str]:
    """The subscriptions of customers whom the caller sees and a text finds; others are served
    meanwhile.
    """
    customers = work.store.customers
    customers.readers += 1
    try:
        return await work.in_slices(_of_customers(work, customers, wanted))
    finally:
        customers.readers -= 1


def _of_customers(work: Work, customers: Table, wanted: str) -> Sliced[list[str]]:
    found = []
    texts = customers.views.parts["search"].data
    for key in (yield from searched(texts, customers.order, wanted)):
        yield
        ident, subscriptions = customers.rows[key].id, work.store.subscriptions
        if work.sees_customer(ident):
            for each in subscriptions.bucket("customerId", ident):
                found.append(subscriptions.rows[each].id)
    return found
