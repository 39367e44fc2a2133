"""Defects in rules that the model knows, planted in turn: `python -m tests.properties.planted`, of which names choose.

Prints as JSON what the sequences found of each, null where they found nothing.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from stub_server.domain import calendar, subscriptions
from stub_server.engine import billing, renewals
from stub_server.store.memory import Store

from .client import Disagreement
from .machine import play

SEQUENCES = 60
Patch = pytest.MonkeyPatch


def bills_stay_open(patch: Patch) -> None:
    """Who leaves keeps an open bill."""
    patch.setattr(billing, "call_off_bill", lambda draft, row: None)


def who_pays_again_has_two(patch: Patch) -> None:
    """A paid order opens a second subscription of the same plan."""
    right: Any = billing.pay

    def pay(draft: Any, row: Any, *how: Any, **options: Any) -> Any:
        with Patch.context() as inner:
            if not row.hidden["renewal"]:
                inner.setattr(billing, "running_of", lambda *_: None)
            return right(draft, row, *how, **options)

    patch.setattr(billing, "pay", pay)


def time_goes_on_while_suspended(patch: Patch) -> None:
    """A suspended project's subscriptions are billed and end."""
    patch.setattr(renewals, "is_suspended", lambda draft, row: False)


def early_payment_moves_the_start(patch: Patch) -> None:
    """A renewal that is paid early begins at once."""
    right = subscriptions.renewed

    def renewed(public: Any, hidden: Any, *paid: Any) -> Any:
        return right(public, hidden | {"paid_by": []}, *paid)

    patch.setattr(subscriptions, "renewed", renewed)


def cards_wait(patch: Patch) -> None:
    """A card's renewal waits to be paid."""
    patch.setattr(subscriptions, "CHARGED", "")


def bills_go_to_nobody_new(patch: Patch) -> None:
    """A renewal is addressed to the customer as the first order was."""
    right: Any = renewals.renewal_order

    def renewal_order(draft: Any, row: Any) -> Any:
        first = draft.store.orders.open(row.public["orderId"]).public["customer"]
        with Patch.context() as inner:
            inner.setattr(renewals, "as_buyer", lambda customer: first)
            return right(draft, row)

    patch.setattr(renewals, "renewal_order", renewal_order)


def any_refund_ends_it(patch: Patch) -> None:
    """The refund of a period that is to come ends the subscription too."""

    def withdrawn(public: Any, hidden: Any, now: int, order_id: str) -> Any:
        return subscriptions.ended(public, "canceled", now), hidden

    patch.setattr(subscriptions, "withdrawn", withdrawn)


def disputes_hold_nothing_up(patch: Patch) -> None:
    """A subscription is billed and past due while an order of it is disputed."""
    patch.setattr(subscriptions, "has_dispute", lambda hidden: False)


def months_are_those_of_greenwich(patch: Patch) -> None:
    """Periods are counted in UTC."""
    patch.setattr(calendar, "BEHIND_UTC_MS", 0)


def open_orders_hold_no_seat(patch: Patch) -> None:
    """Only who has paid holds a seat."""

    def is_sold_out(store: Store, plan: Any, customer_id: str | None) -> bool:
        once, most = plan["billing_type"] == "one_time", plan["max_subscribers"]
        table, count = (store.orders, "plan_buyers") if once else (store.subscriptions, "plan_subscribers")
        seated = table.members(count, plan["id"])
        return most is not None and customer_id not in seated and len(seated) >= most

    patch.setattr(Store, "is_sold_out", is_sold_out)


DEFECTS: dict[str, Callable[[Patch], None]] = {
    defect.__name__: defect
    for defect in (
        bills_stay_open,
        who_pays_again_has_two,
        time_goes_on_while_suspended,
        early_payment_moves_the_start,
        cards_wait,
        bills_go_to_nobody_new,
        any_refund_ends_it,
        disputes_hold_nothing_up,
        months_are_those_of_greenwich,
        open_orders_hold_no_seat,
    )
}


def found(names: Iterable[str] = DEFECTS) -> Iterator[tuple[str, str | None]]:
    """Each defect's name, and where the server was of another mind than the model."""
    for name in names:
        with Patch.context() as patch:
            DEFECTS[name](patch)
            try:
                play(SEQUENCES, shrinks=False)
            except Disagreement as told:
                yield name, " ".join(str(told).split())
            else:
                yield name, None


if __name__ == "__main__":
    print(json.dumps(dict(found(sys.argv[1:] or DEFECTS)), indent=1))
