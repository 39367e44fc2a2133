"""What a Brazilian would stumble over in a seeded world, and does not."""

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from stub_server.domain.calendar import is_working_day
from stub_server.engine.sandbox import Sandbox
from stub_server.kernel.clock import parse_iso
from tests.support.worlds import FIXTURES, world

pytestmark = pytest.mark.check

BRASILIA = timezone(timedelta(hours=-3))


@pytest.fixture(scope="module", params=("default", "busy"))
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The default world, and a fifth of the busy one."""
    if request.param == "default":
        return world("default")
    path: Path = tmp_path_factory.mktemp("scenarios") / "busy.yaml"
    text = (FIXTURES / "scenarios" / "busy.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("scale: 1\n", "scale: 0.2\n"), encoding="utf-8")
    return world(str(path))


@pytest.fixture(scope="module")
def several() -> list[Sandbox]:
    """The default world of other seeds."""
    return [world("default", seed) for seed in (1, 2, 3, 7)]


def _there(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone(BRASILIA)


def _orders(sandbox: Sandbox) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(row.public, row.hidden) for row in sandbox.store.orders.all_rows()]


def test_every_plan_unlocks_something(sandbox: Sandbox) -> None:
    """Nobody pays for nothing: also the plans that a scenario adds to a project of the catalogue."""
    unlocking = {plan for row in sandbox.store.products.all_rows() for plan in row.public["planIds"]}
    assert set(sandbox.store.plans.keys) == unlocking


def test_nobody_lapses_without_a_bill(sandbox: Sandbox) -> None:
    """Whoever is past due or has expired was asked for a renewal that was not paid."""
    for row in sandbox.store.subscriptions.all_rows():
        if row.public["status"] in ("past_due", "expired"):
            last = sandbox.store.orders.open(row.public["lastOrderId"])
            assert last is not None
            assert last.hidden["renewal"], row.public["code"]
            assert last.public["status"] != "paid", row.public["code"]


def test_a_renewal_is_asked_for_after_the_last_one_was_paid(tmp_path: Path) -> None:
    """As the clock does it: who pays late is asked again from then on. It is by the week that this matters."""
    text = (FIXTURES / "scenarios" / "default.yaml").read_text(encoding="utf-8")
    assert "name: Semanal, share: 4," in text
    path = tmp_path / "weekly.yaml"
    path.write_text(text.replace("name: Semanal, share: 4,", "name: Semanal, share: 400,"), encoding="utf-8")
    paid: dict[str, int] = {}
    for public, hidden in _orders(world(str(path))):  # oldest first
        subscription = hidden["subscriptionId"]
        if subscription is not None:
            assert parse_iso(public["createdAt"]) >= paid.get(subscription, 0), public["code"]
            paid[subscription] = hidden["paid_at"] or 0


def test_people_buy_by_day(sandbox: Sandbox) -> None:
    """First and later purchases alike: few of them between one and six in the morning."""
    seen: set[str] = set()
    hours: dict[bool, Counter[bool]] = {True: Counter(), False: Counter()}
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
        methods = Counter((hidden["renewal"], public["paymentMethod"]) for public, hidden in _orders(sandbox))
        assert methods[True, "credit_card"] > methods[True, "pix"], sandbox.seed
        assert methods[False, "pix"] > methods[False, "credit_card"], sandbox.seed


def test_nobody_abroad_pays_by_pix() -> None:
    """It takes an account in Brazil."""
    orders = [public for public, _ in _orders(world("default"))]
    abroad = [order for order in orders if order["customer"]["address"].get("country", "BR") != "BR"]
    assert [order["paymentMethod"] for order in abroad] == ["credit_card"]


def test_cards_are_refused_for_different_reasons(sandbox: Sandbox) -> None:
    codes = Counter(
        public["last_transaction"]["failure_code"]
        for public, _ in _orders(sandbox)
        if (public["paymentMethod"], public["status"]) == ("credit_card", "failed")
    )
    assert len(codes) >= 3
    assert max(codes.values()) < 0.8 * codes.total()


def test_a_bank_slip_clears_on_a_working_morning(sandbox: Sandbox) -> None:
    """But for the few that are paid in the last minute of a grace."""
    paid = [_there(hidden["paid_at"]) for public, hidden in _orders(sandbox) if _is_paid_slip(public, hidden)]
    assert sum(_is_open(at) and 6 <= at.hour < 10 for at in paid) >= 0.95 * len(paid) > 0


def _is_open(at: datetime) -> bool:
    return is_working_day(at.toordinal() - datetime(1970, 1, 1).toordinal())


def _is_paid_slip(public: dict[str, Any], hidden: dict[str, Any]) -> bool:
    return public["paymentMethod"] == "boleto" and hidden["paid_at"] is not None


def test_a_customer_who_was_updated_has_changed(sandbox: Sandbox) -> None:
    """The telephone is another than the first order has."""
    moved = [
        row.public for row in sandbox.store.customers.all_rows() if row.public["updatedAt"] > row.public["createdAt"]
    ]
    assert moved
    since = {customer["id"]: customer["updatedAt"] for customer in moved}
    first: dict[str, dict[str, Any]] = {}
    for public, hidden in _orders(sandbox):
        if public["createdAt"] < since.get(hidden["customerId"], ""):
            first.setdefault(hidden["customerId"], public["customer"])
    assert first
    for customer in moved:
        phone = customer["phones"]["mobile_phone"]
        if customer["id"] in first and "mobile_phone" in first[customer["id"]]["phones"]:
            assert not first[customer["id"]]["phones"]["mobile_phone"].endswith(phone["number"])


def test_no_more_is_sold_than_there_are_seats(tmp_path: Path) -> None:
    """A plan of few seats is never overfull: the crowd buys as many as there are, and then something else."""
    text = (FIXTURES / "scenarios" / "default.yaml").read_text(encoding="utf-8")
    assert text.count("share: 55, amount: 49.90,") == text.count("name: Vitalício, share: 2,") == 1
    text = text.replace("share: 55, amount: 49.90,", "share: 55, amount: 49.90, max_subscribers: 20,")
    text = text.replace("name: Vitalício, share: 2,", "name: Vitalício, share: 20, max_subscribers: 6,")
    path = tmp_path / "seats.yaml"
    path.write_text(text, encoding="utf-8")
    found = world(str(path))
    plans = {row.id: row.public for row in found.store.plans.all_rows()}
    limited = {ident: plan["max_subscribers"] for ident, plan in plans.items() if plan["max_subscribers"]}
    for ident, seats in limited.items():
        assert 0 < _most_at_once(found, ident, plans[ident]["billing_type"]) <= seats
    assert len(found.store.orders) == 600


def _most_at_once(sandbox: Sandbox, plan: str, kind: str) -> int:
    """How many customers held a seat of a plan at one time: by an open first order, a membership, a payment."""
    spells: list[tuple[int, str, int]] = []
    for public, hidden in _orders(sandbox):
        if hidden["planId"] == plan and not hidden["renewal"]:
            held, changed = hidden["customerId"], parse_iso(public["updatedAt"])
            spells.append((parse_iso(public["createdAt"]), held, 1))
            if kind == "one_time" and public["status"] not in ("paid", "pending"):
                spells.append((changed, held, -1))
            if kind != "one_time" and public["status"] != "pending":
                spells.append((hidden["paid_at"] or changed, held, -1))
    for row in sandbox.store.subscriptions.all_rows():
        if row.public["planId"] == plan:
            spells.append((parse_iso(row.public["createdAt"]), row.public["customerId"], 1))
            if row.public["ended_at"] is not None:
                spells.append((parse_iso(row.public["ended_at"]), row.public["customerId"], -1))
    seats, most = Counter[str](), 0
    for _, held, change in sorted(spells, key=lambda spell: (spell[0], -spell[2])):
        seats[held] += change
        most = max(most, sum(count > 0 for count in seats.values()))
    return most
