"""The statistics of every project are what its orders and subscriptions add up to, for all time and
for a period.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from random import Random

import pytest

from stub_server.testing import Server

from ..journeys.steps import done
from .figures import (
    ALWAYS,
    TOP,
    Period,
    conversion,
    money,
    monthly,
    order_figures,
    plan_figures,
    within,
)
from .filters import Json
from .reading import Reader

SAO_PAULO = timezone(timedelta(hours=-3))


def of(reader: Reader, operation: str, project: str) -> list[Json]:
    """The records of a list that belong to a project."""
    return [record for record in reader.records(operation) if record["projectId"] == project]


def stats(reader: Reader, project: str, period: Period = ALWAYS) -> Json:
    """The statistics as the server has them."""
    params = {
        name: end for name, end in zip(("from", "to"), period, strict=True) if end is not None
    }
    found: Json = done(reader.api.get(f"/v2/projects/{project}/stats", params=params))["data"][
        "stats"
    ]
    return found


def renewals(reader: Reader, project: str) -> set[str]:
    """The orders that a subscription brought about, not a checkout."""
    first = {held["id"]: held["orderId"] for held in of(reader, "listSubscriptions", project)}
    orders = of(reader, "listOrders", project)
    return {
        order["id"]
        for order in orders
        if first.get(order["subscriptionId"], order["id"]) != order["id"]
    }


def periods(reader: Reader, project: str) -> Iterator[Period]:
    """All time; from and to the instants of orders; between two of them, one, or none; before and
    after everything.
    """
    yield None, None
    yield "9999-12-31T23:59:59Z", None
    yield None, "0001-01-01T00:00:00Z"
    orders = of(reader, "listOrders", project)
    moved = (
        order["last_transaction"].get(name)
        for order in orders
        for name in ("paid_at", "refunded_at")
    )
    held = sorted({*(order["createdAt"] for order in orders), *moved} - {None})
    chosen = Random(project)
    for at in chosen.sample(held, min(4, len(held))):
        yield at, None
        yield None, at
        yield at, at
        late = chosen.choice(held)
        yield at, late
        moment = datetime.fromisoformat(at)
        yield at, (moment + timedelta(milliseconds=1)).isoformat(timespec="milliseconds")
        yield moment.astimezone(SAO_PAULO).isoformat(timespec="milliseconds"), None


def in_utc(end: str | None) -> str | None:
    """An end of a period as it is answered."""
    if end is None:
        return None
    moment = datetime.fromisoformat(end).astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture(scope="module")
def projects(reader: Reader) -> list[str]:
    """Every project of the world."""
    return [project["id"] for project in reader.records("listProjects")]


@pytest.mark.check
def test_orders_and_revenue_are_those_of_the_period(reader: Reader, projects: list[str]) -> None:
    """The orders that were created in it, in the state in which they are now; the money that moved
    in it.
    """
    parts = set()
    for project in projects:
        orders = of(reader, "listOrders", project)
        for period in periods(reader, project):
            chosen, told = within(orders, period), stats(reader, project, period)
            expected = {"projectId": project, "from": in_utc(period[0]), "to": in_utc(period[1])}
            expected |= order_figures(orders, period)
            assert expected == {name: told[name] for name in expected}
            parts.add(0 < len(chosen) < len(orders))
    assert parts == {True, False}


def test_the_best_plans_are_those_of_the_period(reader: Reader, projects: list[str]) -> None:
    """At most five with the highest revenue in it. Plans of equal revenue may change places."""
    names = {plan["id"]: plan["name"] for plan in reader.records("listPlans")}
    sizes = set()
    for project in projects:
        orders = of(reader, "listOrders", project)
        for period in periods(reader, project):
            every = plan_figures(orders, names, period)
            told = stats(reader, project, period)["top_plans"]
            assert [plan["revenue"] for plan in every[:TOP]] == [
                plan["revenue"] for plan in told
            ], period
            assert all(plan in every for plan in told), period
            assert len({plan["planId"] for plan in told}) == len(told)
            sizes.add(len(told))
    assert {0, 1, TOP} <= sizes


def test_the_conversion_rate_is_that_of_the_period(reader: Reader, projects: list[str]) -> None:
    """Of those that are decided, where no renewal is among them; nothing where none is decided."""
    rates = set()
    for project in projects:
        later = renewals(reader, project)
        for period in periods(reader, project):
            orders = within(of(reader, "listOrders", project), period)
            if later.isdisjoint(order["id"] for order in orders):
                rate = conversion(orders, later)
                assert rate == stats(reader, project, period)["conversion_rate"], period
                rates.add(rate)
    assert None in rates
    assert len(rates) > 2


def test_renewals_are_no_checkouts(sandbox_server: Server) -> None:
    """Half of two checkouts are paid, whatever the subscription pays later."""
    with sandbox_server.sandbox(scenario="empty") as sandbox:
        held = sandbox.subscription(sandbox.pay(sandbox.order()))
        sandbox.fail(sandbox.order())
        path = f"/v2/projects/{sandbox.sample['projectId']}/stats"
        rates = []
        for _ in range(2):
            rates.append(done(sandbox.api.get(path))["data"]["stats"]["conversion_rate"])
            done(sandbox.control.post(f"/subscriptions/{held['id']}/renew"))
    assert [0.5, 0.5] == rates


def earning(reader: Reader, project: str) -> list[Json]:
    """The subscriptions of a project that renew: an archived one has none."""
    (found,) = [each for each in reader.records("listProjects") if each["id"] == project]
    return [] if found["status"] == "archived" else of(reader, "listSubscriptions", project)


def test_monthly_revenue_is_rounded_once(reader: Reader, projects: list[str]) -> None:
    """The sum is rounded, not what it is made of."""
    expected = {project: money(monthly(earning(reader, project))) for project in projects}
    assert expected == {project: stats(reader, project)["mrr"] for project in projects}


def test_each_refund_of_an_order_counts_from_its_own_instant_on(sandbox_server: Server) -> None:
    with sandbox_server.sandbox(scenario="empty") as sandbox:
        order, instants = sandbox.pay(sandbox.order()), list[str]()
        for amount in (1, 2, 4):
            instants.append(sandbox.control.get("/clock").json()["now"])
            sandbox.refund(order, amount=amount)
            sandbox.advance(days=1)
        path = f"/v2/projects/{sandbox.sample['projectId']}/stats"
        answers = [sandbox.api.get(path, params={"from": instant}) for instant in instants]
    told = [done(answer)["data"]["stats"]["revenue"]["refunded"] for answer in answers]
    assert [7, 6, 4] == told
