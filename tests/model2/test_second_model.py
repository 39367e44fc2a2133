"""The second model plays five thousand operations on each of four scenarios."""

from dataclasses import replace
from random import Random

import pytest

from ..journeys.hooks import clients
from ..support.live import FROZEN, running
from .player import Life, Tally

pytestmark = [pytest.mark.check, pytest.mark.night]
OPERATIONS = 5_000


@pytest.mark.parametrize("scenario", ["empty", "default", "past_due", "extremes"])
def test_lives_in_a_scenario_are_as_the_second_model_has_them(scenario: str) -> None:
    tally = played(scenario, OPERATIONS)
    assert [] == tally.mismatches, "\n\n".join(tally.mismatches[:5])
    assert OPERATIONS <= tally.acts.total()
    assert {
        f"Order {status}"
        for status in ("pending", "paid", "failed", "expired", "canceled", "refunded")
    } <= {*tally.states}
    assert {
        f"Subscription {status}"
        for status in ("trialing", "active", "past_due", "canceled", "expired")
    } <= {*tally.states}
    assert {
        "plan_sold_out",
        "plan_in_use",
        "project_not_active",
        "order_already_paid",
        "refund_window_closed",
    } <= {*tally.refusals}


def played(scenario: str, operations: int, seed: int = 47) -> Tally:
    """So many operations, in lives that each begin with the scenario as it was."""
    random, tally = Random(f"{scenario} {seed}"), Tally()
    with running(replace(FROZEN, scenario=scenario)) as live, clients(live) as (api, control):
        assert 201 == control.post("/snapshots", json={"name": "begin"}).status_code
        while tally.acts.total() < operations:
            Life(api, control, random, tally).play()
            assert 200 == control.post("/snapshots/begin/restore").status_code
    return tally
