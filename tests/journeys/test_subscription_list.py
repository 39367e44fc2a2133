"""The list of subscriptions over HTTP: filters, and the range of the next billing."""

import httpx2
import pytest

from ..support.make import Json, Maker
from .steps import UNKNOWN, done, pay


def ids(client: httpx2.Client, **query: str) -> list[str]:
    """The ids on the first page of a list of subscriptions."""
    return [subscription["id"] for subscription in done(client.get("/v2/subscriptions", params=query))["subscriptions"]]


class Opened:
    """A project with four subscriptions: billed in a week, in a month, in a year, and no more."""

    def __init__(self, api: httpx2.Client, control: httpx2.Client, make_plan: Maker, make_order: Maker) -> None:
        first = make_plan(interval="week")
        self.project_id: str = first["projectId"]
        plans = [first, *(make_plan(self.project_id, interval=interval) for interval in ("month", "year", "day"))]
        self.week, self.month, self.year, self.over = (self._open(api, control, make_order, plan) for plan in plans)
        done(control.post(f"/subscriptions/{self.over['id']}/cancel"))

    @staticmethod
    def _open(api: httpx2.Client, control: httpx2.Client, make_order: Maker, plan: Json) -> Json:
        pay(control, make_order(plan))
        found = api.get("/v2/subscriptions", params={"planId": plan["id"]}).json()["subscriptions"]
        assert len(found) == 1
        subscription: Json = found[0]
        return subscription


@pytest.fixture
def opened(api: httpx2.Client, control: httpx2.Client, make_plan: Maker, make_order: Maker) -> Opened:
    """The four subscriptions."""
    return Opened(api, control, make_plan, make_order)


def test_filters_combine(api: httpx2.Client, opened: Opened, make_project: Maker) -> None:
    """Each narrows; ids match in letters of either case; an unknown id matches nothing."""
    project, customer = opened.project_id, opened.week["customerId"]
    running = {opened.week["id"], opened.month["id"], opened.year["id"]}
    assert set(ids(api, projectId=project.upper())) == {*running, opened.over["id"]}
    assert set(ids(api, projectId=project, status="active")) == running
    assert ids(api, projectId=project, status="canceled") == [opened.over["id"]]
    assert ids(api, projectId=project, planId=opened.month["planId"]) == [opened.month["id"]]
    assert set(ids(api, projectId=project, customerId=customer, status="active")) == running
    assert ids(api, planId=opened.over["planId"], customerId=customer, status="active") == []
    assert ids(api, customerId=UNKNOWN) == []
    assert ids(api, projectId=make_project()["id"]) == []


def test_what_is_billed_no_more_is_in_no_range(api: httpx2.Client, opened: Opened) -> None:
    """A canceled subscription has no next billing, so no end of a range takes it in."""
    found = ids(api, projectId=opened.project_id, next_billing_until="9999-12-31T23:59:59Z", sort="-next_billing_at")
    assert found == [opened.year["id"], opened.month["id"], opened.week["id"]]
    early = ids(api, projectId=opened.project_id, next_billing_since="0001-01-01T00:00:00Z")
    assert opened.over["id"] not in early
    assert len(early) == 3


def test_an_order_leads_to_its_subscription_and_back(
    api: httpx2.Client, control: httpx2.Client, opened: Opened, make_order: Maker
) -> None:
    """The order that opened it and those that renew it, paid or not; ids match in letters of either case."""
    first, ident = opened.month["orderId"], opened.month["id"]
    renewal = done(control.post(f"/subscriptions/{ident}/renew"))["order"]["id"]
    assert [ident] == ids(api, orderId=first)
    assert [ident] == ids(api, orderId=renewal.upper(), status="active")
    assert [] == ids(api, orderId=renewal, status="canceled")
    assert [] == ids(api, orderId=renewal, projectId=UNKNOWN)
    listed = done(api.get("/v2/orders", params={"subscriptionId": ident.upper()}))["orders"]
    assert {first, renewal} == {order["id"] for order in listed}
    assert [] == done(api.get("/v2/orders", params={"subscriptionId": ident, "status": "pending"}))["orders"]
    unpaid = make_order()
    assert [] == ids(api, orderId=unpaid["id"])
    assert [] == ids(api, orderId=UNKNOWN)
    assert [] == done(api.get("/v2/orders", params={"subscriptionId": UNKNOWN}))["orders"]
    for path, name in (("/v2/subscriptions", "orderId"), ("/v2/orders", "subscriptionId")):
        refused = api.get(path, params={name: "PLANO"})
        assert (422, name) == (refused.status_code, refused.json()["details"][0]["field"])
