"""Subscriptions: running memberships. Paid orders open them and time changes them; the API only lists them."""

from collections.abc import Callable, Iterator

from ..calls.call import Call
from ..calls.reply import Reply, listed, query_of
from ..contract.formats import range_end_ms
from ..kernel.clock import iso
from ..kernel.record import Body
from ..store.tables import finder

# Subscriptions without a next billing have "" in its index: before every date-time, and in no range.
_EARLIEST = "0"
_HANDLED = ("id", "orderId", "search", "next_billing_since", "next_billing_until")


def list_subscriptions(call: Call, query: Body) -> Reply:
    table = call.store.subscriptions
    found = query_of(call, table, query, handled=_HANDLED)
    since, until = query.get("next_billing_since"), query.get("next_billing_until")
    if since is not None or until is not None:
        low = _EARLIEST if since is None else iso(range_end_ms(since))
        high = None if until is None else iso(range_end_ms(until))
        found.between["-next_billing_at"] = (low, high)
    if "orderId" in query:
        order = call.store.orders.open(query["orderId"].lower())
        opened = None if order is None else order.hidden["subscriptionId"]
        found.ids = () if opened is None else (opened,)
    if "id" in query:
        wanted = query["id"].lower()
        found.ids = (wanted,) if found.ids is None or wanted in found.ids else ()
    if "search" in query:
        of_customers = set(_of_customers(call, finder(query["search"])))
        found.ids = of_customers if found.ids is None else of_customers.intersection(found.ids)
    return listed(call, table, found, "Subscriptions retrieved.", "subscriptions")


def _of_customers(call: Call, finds: Callable[[str], bool]) -> Iterator[str]:
    """The subscriptions of customers whom the caller sees and a text finds."""
    customers, subscriptions = call.store.customers, call.store.subscriptions
    for key, text in customers.texts["search"].data.items():
        ident = customers.rows[key].id
        if finds(text) and call.sees_customer(ident):
            yield from (subscriptions.rows[each].id for each in subscriptions.bucket("customerId", ident))
