"""`default` and `busy` have something in each state of each lifecycle, whatever the seed."""

from collections import Counter

import pytest

from stub_server.core.record import Row
from stub_server.domain.api_keys import state
from stub_server.engine.sandbox import Sandbox

from ..support.worlds import world

SEEDS = (42, 1, 2)
NIGHT = range(3, 21)
PRODUCT_STATES = {"draft", "active", "archived"}
PLAN_STATES = {"active", "inactive"}
TABLES = {
    "Order": "orders", "Subscription": "subscriptions", "Project": "projects", "ApiKey": "api_keys",
    "Webhook": "webhooks", "WebhookLogEntry": "webhook_logs",
}  # fmt: skip


def state_of(sandbox: Sandbox, row: Row) -> str:
    if row.table == "api_keys":
        return state(row, sandbox.clock.now)
    if row.table == "webhooks":
        return "active" if row["is_active"] else "inactive"
    return row.status


def states(sandbox: Sandbox) -> dict[str, Counter[str]]:
    """How many records of each lifecycle are in each of its states."""
    found = {}
    for schema, lifecycle in sandbox.rules.lifecycles.items():
        rows = sandbox.store.tables[TABLES[schema]].all_rows()
        count = Counter(state_of(sandbox, row) for row in rows)
        found[schema] = Counter({name: count[name] for name in lifecycle.states})
    return found


def seats(sandbox: Sandbox) -> dict[str, bool]:
    """Of the plans on sale with limited places, whether each is sold out."""
    plans = [
        row.public
        for row in sandbox.store.plans.all_rows()
        if row.public["max_subscribers"] is not None
    ]
    return {
        plan["id"]: sandbox.store.is_sold_out(plan, None)
        for plan in plans
        if plan["status"] == "active"
    }


SEEDED = [*SEEDS, *(pytest.param(seed, marks=pytest.mark.night) for seed in NIGHT)]


@pytest.mark.parametrize("seed", SEEDED)
@pytest.mark.parametrize("scenario", ["default", "busy"])
def test_every_state_is_there(scenario: str, seed: int, small_busy: str) -> None:
    sandbox = world(small_busy if scenario == "busy" else scenario, seed=seed)
    missing = [
        f"{schema} {name}"
        for schema, of in states(sandbox).items()
        for name, n in of.items()
        if not n
    ]
    assert missing == []
    store = sandbox.store
    assert PRODUCT_STATES <= {row.public["status"] for row in store.products.all_rows()}
    assert PLAN_STATES <= {row.public["status"] for row in store.plans.all_rows()}
    pending = [row.public for row in store.orders.rows_of("status", "pending")]
    assert {"pix", "boleto"} <= {order["paymentMethod"] for order in pending}
    assert {True, False} == set(seats(sandbox).values())
