"""What a Brazilian would stumble over in a seeded world, and does not."""

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from stub_server.core.clock import parse_iso
from stub_server.engine.sandbox import Sandbox
from tests.support.worlds import world

pytestmark = pytest.mark.check

BRASILIA = timezone(timedelta(hours=-3))


@pytest.fixture(scope="module")
def default() -> Sandbox:
    """The default sandbox, to look at."""
    return world("default")


@pytest.fixture(scope="module", params=("default", "busy"))
def sandbox(request: pytest.FixtureRequest, default: Sandbox, small_busy: str) -> Sandbox:
    """The default sandbox, and a part of the busy one."""
    return default if request.param == "default" else world(small_busy)


@pytest.fixture(scope="module")
def several() -> list[Sandbox]:
    """The default world of other seeds."""
    return [world("default", seed) for seed in (1, 2, 3, 7)]


def _there(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone(BRASILIA)


def _orders(sandbox: Sandbox) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(row.public, row.hidden) for row in sandbox.store.orders.all_rows()]


def test_every_plan_unlocks_something(sandbox: Sandbox) -> None:
    """Nobody pays for nothing: also the plans that a scenario adds to a project of
    the catalogue.
    """
    unlocking = {
        plan for row in sandbox.store.products.all_rows() for plan in row.public["planIds"]
    }
    assert set(sandbox.store.plans.keys) == unlocking


def test_nobody_lapses_without_a_bill(sandbox: Sandbox) -> None:
    """Whoever is past due or has expired was asked for a renewal that was not paid."""
    for row in sandbox.store.subscriptions.all_rows():
        if row.public["status"] in ("past_due", "expired"):
            last = sandbox.store.orders.open(row.public["lastOrderId"])
            assert last is not None
            assert last.hidden["renewal"], row.public["code"]
            assert last.public["status"] != "paid", row.public["code"]


def test_people_buy_by_day(several: list[Sandbox]) -> None:
    """First and later purchases alike: few of them between one and six in the morning."""
    hours: dict[bool, Counter[bool]] = {True: Counter(), False: Counter()}
    for sandbox in several:
        seen: set[str] = set()
        for public, hidden in _orders(sandbox):
            if not hidden["renewal"]:
                night = 1 <= _there(parse_iso(public["createdAt"])).hour < 6
                hours[hidden["customerId"] in seen][night] += 1
                seen.add(hidden["customerId"])
    for later, counted in hours.items():
        assert counted[True] < 0.07 * counted.total(), later


def test_members_renew_mostly_by_card(several: list[Sandbox]) -> None:
    """First orders are mostly by PIX, but what is paid again every month is left to a card."""
    for sandbox in several:
        methods = Counter(
            (hidden["renewal"], public["paymentMethod"]) for public, hidden in _orders(sandbox)
        )
        assert methods[True, "credit_card"] > methods[True, "pix"], sandbox.origin.seed
        assert methods[False, "pix"] > methods[False, "credit_card"], sandbox.origin.seed


def test_nobody_abroad_pays_by_pix(default: Sandbox) -> None:
    """It takes an account in Brazil."""
    orders = [public for public, _ in _orders(default)]
    abroad = [
        order for order in orders if order["customer"]["address"].get("country", "BR") != "BR"
    ]
    assert [order["paymentMethod"] for order in abroad] == ["credit_card"]
