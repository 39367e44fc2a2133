"""Rules of subscriptions: opened by a paid order, changed by renewals and time only.

Their hidden part: `anchor` (ms) is where their periods are counted from, `periods` how many are paid from there,
`paid_by` the orders that paid the current period and those after it, `renewal_order` the open order for the next one,
and `restart` (ms) the anchor from the next payment on, after a standstill of the project.
"""

from ..kernel.clock import DAY, iso
from ..kernel.record import Body
from .calendar import add_interval, grace_ms, lead_ms

CHARGED = "credit_card"  # the method by which renewals are charged automatically


def opened(
    *,
    ident: str,
    code: str,
    defaults: Body,
    plan: Body,
    order: Body,
    order_hidden: Body,
    customer: Body,
    now: int,
    trial: bool,
) -> tuple[Body, Body]:
    """A new subscription's public and hidden parts. A trial comes before the first paid period."""
    trial_end = now + plan["trial_period_days"] * DAY if trial else None
    anchor = now if trial_end is None else trial_end
    end = add_interval(anchor, plan["interval"], plan["interval_count"], 1)
    at, ends, trial_ends = iso(now), iso(end), None if trial_end is None else iso(trial_end)
    public: Body = defaults | {
        "id": ident,
        "code": code,
        "status": "active" if trial_end is None else "trialing",
        "projectId": plan["projectId"],
        "planId": plan["id"],
        "customerId": customer["id"],
        "orderId": order["id"],
        "lastOrderId": order["id"],
        "customer": {name: customer[name] for name in ("id", "name", "email")},
        "plan": {"id": plan["id"], "name": plan["name"]},
        "paymentMethod": order["paymentMethod"],
        "amount": plan["amount"],
        "currency": "BRL",
        "interval": plan["interval"],
        "interval_count": plan["interval_count"],
        "cycle": 0,
        "trial_start": None if trial_ends is None else at,
        "trial_end": trial_ends,
        "current_period_start": at,
        "current_period_end": trial_ends or ends,
        "next_billing_at": ends,
        "cancel_at_period_end": False,
        "metadata": order_hidden["metadata"],
        "createdAt": at,
        "updatedAt": at,
    }
    return public, {"anchor": anchor, "periods": 1, "renewal_order": None, "paid_by": [order["id"]]}


def activated(public: Body, hidden: Body, now: int) -> Body:
    """The subscription after its trial, in the first paid period."""
    return public | {
        "status": "active",
        "current_period_start": iso(hidden["anchor"]),
        "current_period_end": iso(period_end(public, hidden)),
        "updatedAt": iso(now),
    }


def renewed(public: Body, hidden: Body, now: int, order_id: str) -> tuple[Body, Body]:
    """The subscription with one more paid period, from the end of the last one or, after a standstill, from `restart`.

    The current period or trial goes on; only the end changes.
    """
    hidden = dict(hidden)
    restart = hidden.pop("restart", None)
    if restart is not None:
        hidden |= {"anchor": restart, "periods": 0}
    earlier = [] if public["status"] == "past_due" else hidden["paid_by"]
    hidden |= {"periods": hidden["periods"] + 1, "renewal_order": None, "paid_by": [*earlier, order_id]}
    after = public | {"cycle": public["cycle"] + 1, "lastOrderId": order_id, "updatedAt": iso(now)}
    if public["status"] != "trialing":
        after |= {"status": "active", "current_period_start": iso(period_start(public, hidden))}
    return _ends_with(after, hidden), hidden


def withdrawn(public: Body, hidden: Body, now: int, order_id: str) -> tuple[Body, Body]:
    """The subscription without a paid period that has not begun: the one that `order_id` paid."""
    paid_by = [paid for paid in hidden["paid_by"] if paid != order_id]
    hidden = hidden | {"periods": hidden["periods"] - 1, "paid_by": paid_by}
    return _ends_with(public | {"cycle": public["cycle"] - 1, "updatedAt": iso(now)}, hidden), hidden


def rolled(public: Body, hidden: Body, now: int) -> tuple[Body, Body]:
    """The subscription in its next period, which is paid already, once the current one is over."""
    while len(hidden["paid_by"]) > 1 and running_end(public, hidden) <= now:
        hidden = hidden | {"paid_by": hidden["paid_by"][1:]}
    return public | {"current_period_start": iso(period_start(public, hidden)), "updatedAt": iso(now)}, hidden


def _ends_with(public: Body, hidden: Body) -> Body:
    """The subscription with the end of its last paid period; a running trial keeps its own end."""
    end = iso(period_end(public, hidden))
    public = public | {"next_billing_at": None if public["cancel_at_period_end"] else end}
    return public if public["status"] == "trialing" else public | {"current_period_end": end}


def awaiting(public: Body, hidden: Body, order_id: str, now: int) -> tuple[Body, Body]:
    """The subscription once its renewal order exists."""
    return public | {"lastOrderId": order_id, "updatedAt": iso(now)}, hidden | {"renewal_order": order_id}


def restarted(hidden: Body, now: int) -> Body:
    """The hidden part after a standstill of the project: the next paid period begins at `now`."""
    return hidden | {"restart": now, "renewal_order": None}


def past_due(public: Body, now: int) -> Body:
    """The subscription once its period is over and the next one is not paid."""
    return public | {"status": "past_due", "updatedAt": iso(now)}


def ended(public: Body, status: str, now: int) -> Body:
    """The subscription once it is over: canceled or expired."""
    at = iso(now)
    return public | {
        "status": status,
        "canceled_at": (public["canceled_at"] or at) if status == "canceled" else public["canceled_at"],
        "ended_at": at,
        "next_billing_at": None,
        "updatedAt": at,
    }


def ending(public: Body, now: int) -> Body:
    """The subscription once it is to be canceled at the end of the paid period."""
    at = iso(now)
    return public | {"cancel_at_period_end": True, "canceled_at": at, "next_billing_at": None, "updatedAt": at}


def period_end(public: Body, hidden: Body, left: int = 0) -> int:
    """The end of the last paid period, or of the one that has so many left after it.

    It is on the grid of the anchor: the 31st stays the 31st where the month has one.
    """
    return add_interval(hidden["anchor"], public["interval"], public["interval_count"], hidden["periods"] - left)


def period_start(public: Body, hidden: Body) -> int:
    """The start of the running period: the first of those whose orders are known."""
    return period_end(public, hidden, len(hidden["paid_by"]))


def running_end(public: Body, hidden: Body) -> int:
    """The end of the running period, which is not the last one when renewals were paid early."""
    return period_end(public, hidden, len(hidden["paid_by"]) - 1)


def renewal_at(public: Body, hidden: Body) -> int:
    """When the renewal order is made, in ms: by card at the period's end, else before it, to leave time to pay."""
    end = period_end(public, hidden)
    if public["paymentMethod"] == CHARGED:
        return end
    return end - lead_ms(public["interval"], public["interval_count"])


def grace_end(public: Body, hidden: Body) -> int:
    """The end of the grace, in ms: until then an unpaid subscription is past due, then it expires."""
    due = hidden.get("restart") or period_end(public, hidden)
    grace: int = due + grace_ms(public["interval"], public["interval_count"])
    return grace


def renewal_body(public: Body, first: Body, metadata: Body) -> Body:
    """The body of the renewal order: the subscription's price, with the item's description from the first order."""
    return {
        "projectId": public["projectId"],
        "planId": public["planId"],
        "totalAmount": public["amount"],
        "items": [{"description": first["items"][0]["description"], "quantity": 1, "amount": public["amount"]}],
        "metadata": metadata,
    }
