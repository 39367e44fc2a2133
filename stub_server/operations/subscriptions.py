"""Subscriptions: running memberships. Paid orders open them and time changes them; the API only lists them."""

from ..calls.call import Call
from ..calls.reply import Reply, listed, query_of
from ..contract.formats import range_end_ms
from ..kernel.clock import iso
from ..kernel.record import Body

# Subscriptions without a next billing have "" in its index: before every date-time, and in no range.
_EARLIEST = "0"
_HANDLED = ("orderId", "next_billing_since", "next_billing_until")


def list_subscriptions(call: Call, query: Body) -> Reply:
    table = call.store.subscriptions
    found = query_of(call, table, query, handled=_HANDLED)
    since, until = query.get("next_billing_since"), query.get("next_billing_until")
    if since is not None or until is not None:
        low = _EARLIEST if since is None else iso(range_end_ms(since))
        high = None if until is None else iso(range_end_ms(until))
        found.between["next_billing_at"] = (low, high)
    if "orderId" in query:
        order = call.store.orders.open(query["orderId"].lower())
        opened = None if order is None else order.hidden["subscriptionId"]
        found.ids = () if opened is None else (opened,)
    return listed(call, table, found, "Subscriptions retrieved.", "subscriptions")
