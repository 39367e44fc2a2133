"""Repairs of requests to the control surface that do to an order or a subscription what it does not allow."""

from __future__ import annotations

from collections.abc import Iterator

from ..calls.call import CONTROL
from ..domain.orders import DEFAULT_FAILURE
from ..http.rehearsal import Question
from .attempt import Attempt
from .situation import TABLES, Situation

_TRIED = 4


def payable_order(s: Situation) -> Iterator[Attempt]:
    """A payment without what does not fit the order, or of an order that can be paid."""
    if s.field in ("amount", "paid_at"):
        yield s.attempt.without_members([s.field], "Without it the payment fits the order.")
    states = s.stage.rules.lifecycles["Order"].sets["payable"]
    rows = [row for state in states for row in s.newest(s.store.orders, _TRIED, status=state)]
    yield from s.at_others(rows[:_TRIED], "This order can be paid.")
    if s.attempt.member("qr_code") is not None:
        codes = [row.public["last_transaction"].get("qr_code") for row in rows]
        for code in [code for code in codes if code is not None][:1]:
            yield s.attempt.with_member(["qr_code"], code, "An order that can be paid shows this code.")


def refundable_order(s: Situation) -> Iterator[Attempt]:
    """An open order is paid first; of others another one is meant, which was paid not long ago."""
    target = s.target
    if target is not None and target.public["status"] in s.stage.rules.lifecycles["Order"].sets["payable"]:
        call = Question("POST", f"{CONTROL}/orders/{target.id}/pay", "", {}, b"")
        yield from s.after("Only a paid order is refunded.", call)
    yield from s.at_others(s.newest(s.store.orders, _TRIED, status="paid"), "This order can be refunded.")


def smaller_refund(s: Situation) -> Iterator[Attempt]:
    """What is left is refunded."""
    yield s.attempt.without_members(["amount"], "Without an amount all that is left is refunded.")


def failure_of_method(s: Situation) -> Iterator[Attempt]:
    """A failure that payments of the order's method can have."""
    target = s.target
    if target is not None:
        code = DEFAULT_FAILURE[target.public["paymentMethod"]]
        yield s.attempt.with_member(["code"], code, "Payments of this method fail with it.")


def in_a_fitting_state(s: Situation) -> Iterator[Attempt]:
    """Another record, in a state from which the operation moves it."""
    name = next((n for n in s.values if n in TABLES), "")
    table = s.table(name)
    lifecycle = None if table is None else s.stage.rules.lifecycles.get(table.spec.schema)
    if table is None or lifecycle is None:
        return
    states = dict.fromkeys(move.from_ for move in lifecycle.moves if s.operation.id in move.by)
    for state in states:
        rows = s.newest(table, _TRIED, **{lifecycle.field: state})
        yield from s.at_others(rows[:_TRIED], f"It is {state}, and can be moved.")
