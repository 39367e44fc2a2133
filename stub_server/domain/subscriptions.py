"""Rules of subscriptions: opened by a paid order, changed by renewals and time only.

Their hidden part: `anchor` (ms) is where their periods are counted from, `periods` how many are
paid from there, `paid_by` the orders that paid the current period and those after it, `ends` (ms)
the ends of these periods, and `renewal_order` the open order for the next one, or the last there
was when the subscription ended. `dispute`, while there is one, has the disputed orders of the
subscription and since when (ms) there is any.
"""

from bisect import bisect_right

from ..core.clock import DAY, iso, parse_iso
from ..core.record import Body, Row, without
from .boleto import closes_at
from .calendar import add_interval, grace_ms, lead_ms

CHARGED = "credit_card"  # the method that is charged automatically
# after the end of a period: when a declined card is charged again
ATTEMPTS = (DAY, 3 * DAY, 5 * DAY)


def opened(blank: Row, code: str, plan: Body, order: Row, customer: Body, *, trial: bool) -> Row:
    """A new subscription. A trial comes before the first paid period."""
    at = blank["createdAt"]
    anchor = parse_iso(at)
    if trial:
        anchor += plan["trial_period_days"] * DAY
    end = add_interval(anchor, plan["interval"], plan["interval_count"], 1)
    ends = iso(end)
    trial_ends = iso(anchor) if trial else None
    public: Body = {
        "code": code,
        "status": "trialing" if trial else "active",
        "projectId": plan["projectId"],
        "planId": plan["id"],
        "customerId": customer["id"],
        "orderId": order.id,
        "lastOrderId": order.id,
        "customer": {name: customer[name] for name in ("id", "name", "email")},
        "plan": {"id": plan["id"], "name": plan["name"]},
        "paymentMethod": order["paymentMethod"],
        "amount": plan["amount"],
        "currency": "BRL",
        "interval": plan["interval"],
        "interval_count": plan["interval_count"],
        "cycle": 0,
        "trial_start": at if trial else None,
        "trial_end": trial_ends,
        "current_period_start": at,
        "current_period_end": trial_ends or ends,
        "next_billing_at": ends,
        "cancel_at_period_end": False,
        "metadata": order["metadata"],
    }
    hidden = {
        "anchor": anchor,
        "periods": 1,
        "renewal_order": None,
        "paid_by": [order.id],
        "ends": [end],
    }
    return blank.changed(public, hidden)


def activated(row: Row) -> Row:
    """The subscription after its trial, in the first paid period."""
    return row.changed(
        {
            "status": "active",
            "current_period_start": row["trial_end"],
            "current_period_end": iso(period_end(row)),
        }
    )


def renewed(row: Row, order_id: str, method: str) -> Row:
    """The subscription with one more period, paid by `method`, from the end of the last one.

    The current period or trial goes on; only the end changes.
    """
    begins = period_end(row)
    periods = row["periods"] + 1
    end = add_interval(row["anchor"], row["interval"], row["interval_count"], periods)
    paid_by = [*row["paid_by"], order_id]
    ends = [*row["ends"], end]
    after = {"cycle": row["cycle"] + 1, "lastOrderId": order_id, "paymentMethod": method}
    if row.status == "past_due":  # the earlier periods are over
        paid_by = [order_id]
        ends = [end]
        after |= {"status": "active", "current_period_start": iso(begins)}
    return _ends_with(
        row.changed(
            after, {"periods": periods, "renewal_order": None, "paid_by": paid_by, "ends": ends}
        )
    )


def withdrawn(row: Row, order_id: str) -> Row:
    """The subscription without a paid period that has not begun: the one that `order_id` paid."""
    left = {
        "periods": row["periods"] - 1,
        "paid_by": [paid for paid in row["paid_by"] if paid != order_id],
        "ends": row["ends"][:-1],
    }
    return _ends_with(row.changed({"cycle": row["cycle"] - 1}, left))


def rolled(row: Row, now: int) -> Row:
    """The subscription in the last of its paid periods that has begun, once the one before it is
    over.
    """
    ends = row["ends"]
    over = min(bisect_right(ends, now), len(ends) - 1)
    left = {"paid_by": row["paid_by"][over:], "ends": ends[over:]}
    return row.changed({"current_period_start": iso(ends[over - 1])}, left)


def postponed(row: Row, wait: int) -> Row:
    """The subscription after its project was suspended for `wait` ms: all its ends come so much
    later.

    The periods after them are counted from the moved end of the last one.
    """
    ends = [end + wait for end in row["ends"]]
    if row.status == "trialing":
        ends_at = iso(parse_iso(row["trial_end"]) + wait)
        row = row.changed({"trial_end": ends_at, "current_period_end": ends_at})
    return _ends_with(row.keeping({"anchor": ends[-1], "periods": 0, "ends": ends}))


def _ends_with(row: Row) -> Row:
    """The subscription that is billed, or canceled, at the end of its last paid period.

    A trial keeps its own end.
    """
    end = iso(period_end(row))
    after = {"next_billing_at": end, "cancel_at": None}
    if row["cancel_at_period_end"]:
        after = {"next_billing_at": None, "cancel_at": end}
    if row.status != "trialing":
        after["current_period_end"] = end
    return row.changed(after)


def ended(row: Row, status: str, now: int) -> Row:
    """The subscription once it is over: canceled or expired."""
    at = iso(now)
    if status == "canceled":
        row = row.changed({"canceled_at": row["canceled_at"] or at, "cancel_at": at})
    return row.changed({"status": status, "ended_at": at, "next_billing_at": None})


def ending(row: Row, now: int) -> Row:
    """The subscription once it is to be canceled at the end of the paid period."""
    return _ends_with(row.changed({"cancel_at_period_end": True, "canceled_at": iso(now)}))


def resumed(row: Row) -> Row:
    """The subscription once it is not to be canceled at the end of its period after all."""
    return _ends_with(row.changed({"cancel_at_period_end": False, "canceled_at": None}))


def has_dispute(row: Row) -> bool:
    """Whether an order of the subscription is disputed: it is neither billed nor past due
    meanwhile.
    """
    return "dispute" in row.hidden


def disputed(row: Row, order_id: str, now: int) -> Row:
    """The subscription once one more order is disputed."""
    dispute = row.hidden.get("dispute", {"since": now, "orders": []})
    return row.keeping({"dispute": dispute | {"orders": [*dispute["orders"], order_id]}})


def reactivated(row: Row, suspended_at: int, now: int) -> Row:
    """The subscription after a suspension, whose time is not counted once more as time
    of a dispute.
    """
    if not has_dispute(row):
        return row
    dispute = row["dispute"]
    both = now - max(dispute["since"], suspended_at)
    return row.keeping({"dispute": dispute | {"since": dispute["since"] + both}})


def released(row: Row, order_id: str) -> Row:
    """The subscription once an order is no longer disputed."""
    dispute = row["dispute"]
    left = [ident for ident in dispute["orders"] if ident != order_id]
    if left:
        return row.keeping({"dispute": dispute | {"orders": left}})
    return row.replaced(row.public, without(row.hidden, "dispute"))


def period_end(row: Row) -> int:
    """The end of the last paid period."""
    return int(row["ends"][-1])


def renewal_at(row: Row) -> int:
    """When the renewal order is made, in ms: by card at the period's end, else before it, to leave
    time to pay.
    """
    if row["paymentMethod"] == CHARGED:
        return period_end(row)
    return period_end(row) - lead_ms(row["interval"], row["interval_count"])


def grace_end(row: Row) -> int:
    """The end of the grace, in ms: until then an unpaid subscription is past due, then it expires.

    Who pays by boleto has until the end of a banking day.
    """
    end = period_end(row) + grace_ms(row["interval"], row["interval_count"])
    if row["paymentMethod"] == "boleto":
        return closes_at(end)
    return end


def attempts(row: Row) -> tuple[int, ...]:
    """When a declined card is charged again, in ms: never after the grace."""
    due = period_end(row)
    last = grace_end(row)
    return tuple(due + wait for wait in ATTEMPTS if due + wait < last)


def renewal_body(row: Row, first: Row) -> Body:
    """The body of the renewal order: the subscription's price, with the item's description from the
    first order.

    Overlays and files may allow an order without items.
    """
    described = row["plan"]["name"]
    if first["items"]:
        described = first["items"][0]["description"]
    return {
        "projectId": row["projectId"],
        "planId": row["planId"],
        "totalAmount": row["amount"],
        "items": [{"description": described, "quantity": 1, "amount": row["amount"]}],
        "metadata": first["metadata"],
    }
