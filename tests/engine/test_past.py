"""A past that is seeded derives what lists need at its end, or as soon as somebody asks for it."""

from dataclasses import replace

import pytest

from stub_server.app import create_app
from stub_server.engine.tables.table import Table

from ..support.live import FROZEN
from .state import derived, same, stale


@pytest.mark.parametrize("scenario", ["default", "past_due"])
def test_all_that_a_seeded_past_has_derived_follows_from_its_records(scenario: str) -> None:
    assert not stale(create_app(replace(FROZEN, scenario=scenario)).sandboxes.default)


def test_a_table_of_a_past_has_whatever_it_is_asked_for() -> None:
    orders = create_app(replace(FROZEN, scenario="default")).sandboxes.default.store.orders
    past = Table("orders", orders.spec, orders.check)
    past.begin()
    first, *others = orders.all_rows()
    past.replace(None, first)
    assert 1 == past.count("status", first.public["status"])
    assert not past.is_complete
    assert first.hidden["paid_cents"] == past.total("gross", first.hidden["projectId"])
    for row in others:
        past.replace(None, row)
    same(derived(orders), derived(past))
