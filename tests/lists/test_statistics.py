"""The statistics of every project are what its orders and subscriptions add up to, for all time and
for a period.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from random import Random

import pytest

from stub_server.testing import Server

from ..support.make import done, object_of
from .figures import (
    ALWAYS,
    TOP,
    Period,
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
    return object_of(
        done(reader.api.get(f"/v2/projects/{project}/stats", params=params))["data"], "stats"
    )


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
            chosen = within(orders, period)
            told = stats(reader, project, period)
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


def test_each_refund_of_an_order_counts_from_its_own_instant_on(sandbox_server: Server) -> None:
    with sandbox_server.sandbox(scenario="empty") as sandbox:
        order = sandbox.pay(sandbox.order())
        instants = list[str]()
        for amount in (1, 2, 4):
            instants.append(sandbox.control.get("/clock").json()["now"])
            sandbox.refund(order, amount=amount)
            sandbox.advance(days=1)
        path = f"/v2/projects/{sandbox.sample['projectId']}/stats"
        answers = [sandbox.api.get(path, params={"from": instant}) for instant in instants]
    told = [done(answer)["data"]["stats"]["revenue"]["refunded"] for answer in answers]
    assert [7, 6, 4] == told


def test_a_renewal_is_no_checkout(sandbox_server: Server) -> None:
    with sandbox_server.sandbox(scenario="empty") as sandbox:
        begun = sandbox.control.get("/clock").json()["now"]
        held = sandbox.subscription(sandbox.pay(sandbox.order()))
        done(sandbox.control.post(f"/subscriptions/{held['id']}/renew"))
        done(sandbox.control.post(f"/orders/{sandbox.order()['id']}/cancel"))
        path = f"/v2/projects/{sandbox.sample['projectId']}/stats"
        answers = [sandbox.api.get(path, params=query) for query in ({}, {"from": begun})]
    assert [0.5, 0.5] == [done(each)["data"]["stats"]["conversion_rate"] for each in answers]
