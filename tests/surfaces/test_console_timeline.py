"""The line of time on the page of a subscription: its orders, what is due, and a table that says
the same.
"""

import re

import httpx2
import pytest

from stub_server.console.charts import of_subscription

from ..support.console import Console
from ..support.make import Maker

pytestmark = pytest.mark.check

NOW = "2026-11-20T14:32:05.000Z"


def test_a_subscription_has_a_line_of_its_orders_and_of_what_is_due(
    console: Console, control: httpx2.Client, api: httpx2.Client, make_order: Maker
) -> None:
    order = make_order()
    control.post(f"/orders/{order['id']}/pay").raise_for_status()
    found = api.get("/v2/subscriptions", params={"orderId": order["id"]}).json()
    page = console.open(f"/console/data/subscriptions/{found['subscriptions'][0]['id']}")
    assert f"Order {order['code']}: paid" in page.text
    assert "Next order is placed" in page.text
    assert any(link.endswith(f"console/data/orders/{order['id']}") for link in page.links)
    places = [float(each) for each in re.findall(r'cx="([0-9.]+)%"', page.response.text)]
    assert places == sorted(places)
    assert len(places) >= 4
    assert "Timeline" not in console.open(f"/console/data/orders/{order['id']}").text


def test_a_moment_is_no_line() -> None:
    assert of_subscription({"createdAt": NOW}, [], [], NOW) is None
    assert of_subscription({}, [], [], NOW) is None


def test_the_ends_of_the_line_are_the_first_and_the_last_mark() -> None:
    due = {"due": "2026-12-20T14:32:05.000Z", "job": "some.other"}
    line = of_subscription({"createdAt": "2026-10-21T14:32:05.000Z"}, [], [due], NOW)
    assert line is not None
    assert [("Created", 2.0), ("some.other", 98.0)] == [(mark.text, mark.x) for mark in line.marks]
    assert line.now == pytest.approx(50.0)
