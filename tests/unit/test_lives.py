"""The lives that seeded members have lived."""

import pytest

from stub_server.data.lives import Lives
from tests.support.worlds import world

ENDED_WITH_A_BILL = 24
"""A seed with which a subscription of the default scenario ends while its next bill is open."""


def test_nobody_decides_when_to_pay_a_bill_that_is_canceled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is drawn for nothing changes what everybody does later."""
    states: set[str] = set()
    pays_bill = vars(Lives)["_pays_bill"]

    def noted(self: Lives, ident: str, end: int, *, late: bool) -> int:
        order = self.store.orders.get(ident)
        states.add(order.public["status"])
        return int(pays_bill(self, ident, end, late=late))

    monkeypatch.setattr(Lives, "_pays_bill", noted)
    world("default", ENDED_WITH_A_BILL)
    assert {"pending"} == states
