"""Repairs of requests to the control surface that do to an order or a subscription what it does not allow."""

from __future__ import annotations

from collections.abc import Iterator

from ..calls.call import CONTROL
from ..domain.orders import DEFAULT_FAILURE
from ..domain.payments import can_be_late
from .attempt import Attempt
from .rehearsal import Question
from .situation import Situation


def payable_order(s: Situation) -> Iterator[Attempt]:
    """A payment without what does not fit the order."""
    if s.field in ("amount", "paid_at"):
        yield s.attempt.without_members([s.field], "Without it the payment fits the order.")
    if s.target is not None and can_be_late(s.target.public, s.stage.clock.now):
        yield s.attempt.with_member(["late"], True, "A boleto that has expired can be paid late.")


def refundable_order(s: Situation) -> Iterator[Attempt]:
    """An open order is paid first, and a dispute won."""
    target, lifecycle = s.target, s.stage.rules.lifecycles["Order"]
    if target is None:
        return
    path, status = f"{CONTROL}/orders/{target.id}", target.public["status"]
    if status in lifecycle.sets["payable"]:
        yield from s.after("Only a paid order is refunded.", Question("POST", f"{path}/pay", "", {}, b""))
    elif "resolve_dispute" in lifecycle.controls(status):
        headers = {"content-type": "application/json"}
        call = Question("POST", f"{path}/dispute/resolve", "", headers, b'{"outcome":"won"}')
        yield from s.after("A disputed order is refunded once the dispute is won.", call)


def smaller_refund(s: Situation) -> Iterator[Attempt]:
    """What is left is refunded."""
    yield s.attempt.without_members(["amount"], "Without an amount all that is left is refunded.")


def failure_of_method(s: Situation) -> Iterator[Attempt]:
    """A failure that payments of the order's method can have."""
    target = s.target
    if target is not None:
        code = DEFAULT_FAILURE[target.public["paymentMethod"]]
        yield s.attempt.with_member(["code"], code, "Payments of this method fail with it.")
