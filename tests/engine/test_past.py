"""What a seeded past has derived is what its records say."""

from dataclasses import replace

import pytest

from stub_server.app import create_app

from ..support.live import FROZEN
from .state import stale


@pytest.mark.parametrize("scenario", ["default", "past_due"])
def test_all_that_a_seeded_past_has_derived_follows_from_its_records(scenario: str) -> None:
    assert not stale(create_app(replace(FROZEN, scenario=scenario)).sandboxes.default)


def test_a_copy_keeps_its_indexes_whichever_side_writes_first() -> None:
    """The side that wrote second wrote into lists that the other one had still in common with
    it: a fork listed a pending order among the paid ones.
    """
    store = create_app(FROZEN).sandboxes.default.store
    paid = [row for row in store.copy().orders.all_rows() if row.status == "paid"]
    parent = store.copy()
    parent.replace("orders", paid[0], None)
    parent.replace("orders", None, paid[0])
    fork = parent.copy()
    fork.replace("orders", paid[1], paid[1])
    before = fork.orders.count("status", "paid")
    parent.replace("orders", paid[2], None)
    assert before == fork.orders.count("status", "paid")
