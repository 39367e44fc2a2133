"""Archiving a project closes its open bills, whatever they were to be paid with."""

import pytest

from ..support.make import Json, created, make_plan, order_body
from .members import waiting
from .stage import Stage
from .steps import done, refused

METHODS = ("pix", "credit_card", "boleto")
ARCHIVE: dict[str, tuple[str, str, Json]] = {
    "archiveProject": ("POST", "/archive", {}),
    "updateProjectStatus": ("PATCH", "/status", {"status": "archived"}),
    "updateProject": ("PUT", "", {"status": "archived"}),
}


def pending(stage: Stage, plan: Json, method: str) -> Json:
    """A new order that waits for payment."""
    body = order_body(plan["projectId"], plan["id"], paymentMethod=method, customer=waiting(method))
    order = created(stage.api.post("/v2/orders", json=body))
    assert order["status"] == "pending"
    return order


@pytest.mark.parametrize("by", ARCHIVE)
def test_an_archived_project_leaves_no_order_pending(stage: Stage, by: str) -> None:
    """Canceled then and there, in the order and in its transaction, told of once, and not payable any more."""
    plan = make_plan(stage.api, payment_methods=list(METHODS))
    other = pending(stage, make_plan(stage.api), "pix")
    orders = {method: pending(stage, plan, method) for method in METHODS}
    stage.advance(60)
    verb, path, body = ARCHIVE[by]
    done(stage.api.request(verb, f"/v2/projects/{plan['projectId']}{path}", json=body))
    for method, order in orders.items():
        now = stage.get_order(order["id"])
        assert (method, "canceled", "canceled", stage.now()) == (
            now["paymentMethod"],
            now["status"],
            now["last_transaction"]["status"],
            now["updatedAt"],
        )
        assert ["order.created", "order.canceled"] == stage.events(order["id"])
        refused(stage.control.post(f"/orders/{order['id']}/pay"), 409, "order_not_payable")
    left = done(stage.api.get("/v2/orders", params={"projectId": plan["projectId"], "status": "pending"}))
    assert left["pagination"]["total"] == 0
    assert other == stage.get_order(other["id"])
