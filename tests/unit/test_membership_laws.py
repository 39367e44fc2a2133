"""The laws of memberships see what breaks them, and name it."""

from collections.abc import Callable

import pytest

from stub_server.audit.laws import checking
from stub_server.engine.sandbox import Sandbox
from stub_server.kernel.clock import DAY, iso
from stub_server.kernel.record import Row
from stub_server.kernel.slices import at_once

from ..support.worlds import drafted, world

pytestmark = pytest.mark.check

PERIOD = "In an active project, no period, trial or grace period of a subscription is over"
BILL = "No ended subscription has an order that can be paid"
PENDING = "No order is pending after its expiry"
ONE = "No customer has two running subscriptions of the same plan"


@pytest.fixture
def sandbox() -> Sandbox:
    """A seeded world of its own."""
    return world("default")


def broken(sandbox: Sandbox) -> dict[str, list[str]]:
    """What is found, by the law that it breaks."""
    return {found["name"]: found["violations"] for found in at_once(checking(sandbox)) if not found["ok"]}


def some(sandbox: Sandbox, table: str, fits: Callable[[Row], bool]) -> Row:
    """The first record that fits."""
    return next(row for row in sandbox.store.tables[table].all_rows() if fits(row))


def rewritten(sandbox: Sandbox, table: str, row: Row, hidden: dict[str, object] | None = None, **public: object) -> str:
    """A record with other members, as no rule would write them."""
    draft = drafted(sandbox)
    draft.update(sandbox.store.tables[table], row, row.public | public, row.hidden | (hidden or {}))
    draft.record()
    return row.id


def is_active(sandbox: Sandbox, row: Row) -> bool:
    """An active subscription of an active project."""
    project = sandbox.store.projects.peek(row.public["projectId"])
    return row.public["status"] == "active" and project is not None and project["status"] == "active"


def test_a_seeded_world_keeps_them(sandbox: Sandbox) -> None:
    laws = {found["name"]: found["checked"] for found in at_once(checking(sandbox)) if found["ok"]}
    assert all(laws[name] > 0 for name in (PERIOD, PENDING, ONE, BILL))


@pytest.mark.parametrize(("start", "end"), [(-2, -1), (1, 2), (-1, 0)])
def test_an_active_subscription_whose_period_does_not_run_is_found(sandbox: Sandbox, start: int, end: int) -> None:
    now = sandbox.clock.now
    row = some(sandbox, "subscriptions", lambda row: is_active(sandbox, row))
    began, ends = iso(now + start * DAY), iso(now + end * DAY)
    ident = rewritten(sandbox, "subscriptions", row, current_period_start=began, current_period_end=ends)
    assert ident in broken(sandbox)[PERIOD][0]


def test_a_period_of_a_suspended_project_is_not_judged(sandbox: Sandbox) -> None:
    row = some(sandbox, "subscriptions", lambda row: is_active(sandbox, row))
    project = sandbox.store.projects.open(row.public["projectId"])
    assert project is not None
    rewritten(sandbox, "projects", project, status="suspended")
    rewritten(sandbox, "subscriptions", row, current_period_end=iso(sandbox.clock.now - DAY))
    assert PERIOD not in broken(sandbox)


def test_an_open_bill_of_a_subscription_that_is_over_is_found(sandbox: Sandbox) -> None:
    order = some(sandbox, "orders", lambda row: row.public["status"] == "pending")
    over = some(sandbox, "subscriptions", lambda row: row.public["status"] == "canceled")
    ident = rewritten(sandbox, "orders", order, {"subscriptionId": over.id, "renewal": True})
    assert [f"order {ident} is pending, its subscription {over.id} is over"] == broken(sandbox)[BILL]


@pytest.mark.parametrize("end", [0, -1, None])
def test_an_order_that_waits_past_its_end_is_found(sandbox: Sandbox, end: int | None) -> None:
    order = some(sandbox, "orders", lambda row: row.public["status"] == "pending")
    payment = dict(order.public["last_transaction"])
    if end is None:
        del payment["expires_at"]
    else:
        payment["expires_at"] = iso(sandbox.clock.now + end)
    ident = rewritten(sandbox, "orders", order, last_transaction=payment)
    assert ident in broken(sandbox)[PENDING][0]


def test_two_running_subscriptions_of_one_customer_and_plan_are_found(sandbox: Sandbox) -> None:
    one = some(sandbox, "subscriptions", lambda row: row.public["status"] == "active")
    other = some(sandbox, "subscriptions", lambda row: row.public["status"] == "active" and row.id != one.id)
    same = {name: one.public[name] for name in ("customerId", "planId", "projectId", "customer", "plan")}
    rewritten(sandbox, "subscriptions", other, **same)
    assert all(ident in broken(sandbox)[ONE][0] for ident in (one.id, other.id))
