"""Every 409 code of every operation, reached by what it stands for: it changes nothing, and is explained."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from ..support.estate import Estate, webhook_body
from ..support.explained import ANOTHER_WOULD_DO, explanation, nearest_succeeds, needs_another
from ..support.live import NO_TLS
from ..support.make import Json, created, make_customer, make_order, make_plan, make_project
from ..support.receiver import Receiver, receiving
from ..support.requests import OPERATIONS, ask, body_of, path_of, with_code
from ..support.watched import Watched, own_shop, unchanged
from .steps import archive, done, refused
from .test_every_refusal import REFERENCES

CNPJ = "11222333000181"
Answer = httpx2.Response


def create(shop: Estate, operation: str, **changes: object) -> Answer:
    """The operation's request with changes to its body."""
    body = (body_of(OPERATIONS[operation], shop.ids) or {}) | changes
    return shop.api.request(OPERATIONS[operation].method, path_of(OPERATIONS[operation], shop.ids), json=body)


def name_taken(shop: Estate, operation: str) -> Answer:
    what = "Project" if "Project" in operation else "Plan"
    created(create(shop, f"create{what}", name="Um nome"))
    return create(shop, operation, name="UM NOME")


def document_taken(shop: Estate, operation: str) -> Answer:
    document = make_customer(shop.api)["document"]
    return create(shop, operation, document=document)


def document_of_another_type(shop: Estate, operation: str) -> Answer:
    return create(shop, operation, document=CNPJ, document_type="cpf")


def buyer_of_another_type(shop: Estate, operation: str) -> Answer:
    buyer = {"name": "Loja", "email": "loja@example.com", "document": CNPJ, "type": "individual"}
    return create(shop, operation, customer=buyer)


def wrong_total(shop: Estate, operation: str) -> Answer:
    done(shop.control.patch("/settings", json={"strict_amounts": True}))
    return create(shop, operation, totalAmount=1)


def sku_taken(shop: Estate, operation: str) -> Answer:
    created(create(shop, "createProduct", sku="VIOLAO-1"))
    return create(shop, operation, sku="VIOLAO-1")


def of_archived(shop: Estate, operation: str) -> Answer:
    archive(shop.api, shop.ids["projectId"])
    return ask(shop.api, OPERATIONS[operation], shop.ids)


def with_activity(shop: Estate, operation: str) -> Answer:
    return ask(shop.api, OPERATIONS[operation], shop.ids)


def plan_with_subscribers(shop: Estate, operation: str) -> Answer:
    return create(shop, operation, interval="year") if operation == "updatePlan" else with_activity(shop, operation)


def suspended(shop: Estate, operation: str) -> Answer:
    done(shop.api.post(f"/v2/projects/{shop.ids['projectId']}/suspend"))
    return create(shop, operation)


def with_plan(shop: Estate, operation: str, **changes: object) -> Answer:
    done(shop.api.put(f"/v2/plans/{shop.ids['planId']}", json=changes))
    return create(shop, operation)


def impossible_move(shop: Estate, operation: str) -> Answer:
    """Back to draft where an operation can ask for that, out of the archive, or from draft to suspended."""
    if operation in ("updateProject", "updateProjectStatus"):
        path = path_of(OPERATIONS[operation], shop.ids)
        return shop.api.request(OPERATIONS[operation].method, path, json={"status": "draft"})
    if operation == "activateProject":
        archive(shop.api, shop.ids["projectId"])
        return ask(shop.api, OPERATIONS[operation], shop.ids)
    assert operation == "suspendProject"
    return ask(shop.api, OPERATIONS[operation], {"projectId": make_project(shop.api, status="draft")["id"]})


def expired_key(shop: Estate, operation: str) -> Answer:
    key = shop.key(expires_at="2026-01-01T00:00:00Z")
    return shop.api.put(f"/api-keys/{key['id']}", json={"is_active": True})


def url_taken(shop: Estate, operation: str) -> Answer:
    body = webhook_body(shop.receiver, projectId=shop.ids["projectId"])
    created(shop.api.post("/v2/webhooks", json=body))
    return create(shop, operation, url=body["url"], projectId=body["projectId"])


def twenty_webhooks(shop: Estate, operation: str) -> Answer:
    for _ in range(19):
        created(shop.api.post("/v2/webhooks", json=webhook_body(shop.receiver)))
    return create(shop, operation)


def pending_log(shop: Estate, operation: str) -> Answer:
    """Switched off before anything has arrived: the delivery of what happened is called off."""
    body = webhook_body("http://127.0.0.1:9", events=["customer.created"])
    webhook = created(shop.api.post("/v2/webhooks", json=body))["webhook"]
    make_customer(shop.api)
    done(shop.api.put(f"/v2/webhooks/{webhook['id']}", json={"is_active": False}))
    (log,) = done(shop.api.get(f"/v2/webhooks/{webhook['id']}/logs"))["logs"]
    return ask(shop.api, OPERATIONS[operation], {"logId": log["id"]})


def log_of_deleted(shop: Estate, operation: str) -> Answer:
    done(shop.api.delete(f"/v2/webhooks/{shop.ids['webhookId']}"))
    return ask(shop.api, OPERATIONS[operation], shop.ids)


def long_name(shop: Estate, operation: str) -> Answer:
    return create(shop, operation, metadata={"x" * 65: "1"})


def of_nothing(shop: Estate, operation: str) -> Answer:
    """A body that names a record which does not exist."""
    return create(shop, operation, **REFERENCES[operation][1])


CAUSES: dict[str, Callable[[Estate, str], Answer]] = {
    "metadata_key_invalid": long_name,
    "reference_not_found": of_nothing,
    "duplicate_name": name_taken,
    "duplicate_document": document_taken,
    "document_type_conflict": document_of_another_type,
    "duplicate_sku": sku_taken,
    "duplicate_url": url_taken,
    "project_archived": of_archived,
    "project_has_activity": with_activity,
    "project_not_active": suspended,
    "plan_in_use": plan_with_subscribers,
    "plan_not_active": lambda shop, operation: with_plan(shop, operation, status="inactive"),
    "plan_sold_out": lambda shop, operation: with_plan(shop, operation, max_subscribers=1),
    "amount_mismatch": wrong_total,
    "payment_method_not_allowed": lambda shop, operation: with_plan(shop, operation, payment_methods=["boleto"]),
    "invalid_state_transition": impossible_move,
    "api_key_expired": expired_key,
    "webhook_limit": twenty_webhooks,
    "webhook_deleted": log_of_deleted,
    "log_not_retryable": pending_log,
}
ELSEWHERE = ("idempotency_key_reused", "idempotency_in_progress")
NO_ROOM = "webhook_limit"
DECLARED = [(o.id, code) for o in OPERATIONS.values() if 409 in o.responses for code in o.responses[409].codes]


@pytest.fixture
def shop(watched: Watched, sink: str) -> Iterator[Estate]:
    """A merchant in a sandbox of his own, in which no refusal changes anything."""
    with own_shop(watched.live, sink) as made, unchanged(watched):
        yield made


@pytest.mark.parametrize(("operation", "code"), [pair for pair in DECLARED if pair[1] not in ELSEWHERE])
@pytest.mark.matrix
def test_a_conflict_has_the_code_of_its_cause_and_a_nearest_request(
    shop: Estate, tmp_path: Path, operation: str, code: str
) -> None:
    cause = CAUSES[code]
    if code == "document_type_conflict" and "Order" in operation:
        cause = buyer_of_another_type
    refusal = cause(shop, operation)
    refused(refusal, 409, code)
    found = explanation(shop.control, refusal)
    assert refusal.json()["message"] == found["summary"]
    others = ("deletePlan", "plan_in_use"), ("activateProject", "invalid_state_transition")
    if code == NO_ROOM:
        assert found["nearest"] is None, "a webhook would have to be deleted"
    elif code in ANOTHER_WOULD_DO or (operation, code) in others:
        needs_another(found)
    else:
        nearest_succeeds(refusal, found, tmp_path)


@pytest.mark.parametrize("operation", with_code(409, "idempotency_key_reused"))
@pytest.mark.matrix
def test_a_key_that_was_used_for_another_request_is_409(shop: Estate, operation: str) -> None:
    """Another body; where there is none, another query."""
    view, headers = OPERATIONS[operation], {"Idempotency-Key": "a-key"}
    ids = shop.ids
    if operation == "activateProject":
        ids = ids | {"projectId": make_project(shop.api, status="draft")["id"]}
    first = ask(shop.api, view, ids, headers=headers)
    assert first.status_code in (200, 201), first.text
    other = {"params": {"again": "1"}} if view.body is None else {"json": another_body(operation, ids)}
    refused(ask(shop.api, view, ids, headers=headers, **other), 409, "idempotency_key_reused")


def another_body(operation: str, ids: dict[str, str]) -> Json:
    """A body that the operation takes and that is not the one sent first."""
    others: dict[str, Json] = {
        "regenerateWebhookSigningKey": {"grace_period_seconds": 5},
        "sendTestWebhook": {"event_type": "order.paid"},
        "createApiKey": {"name": "Outra", "scopes": ["plans:read"]},
        "createProduct": {"projectId": ids["projectId"], "name": "Outro curso"},
    }
    return others.get(operation) or body_of(OPERATIONS[operation], ids) or {"reason": "Outra vez"}


@pytest.fixture
def slow() -> Iterator[Receiver]:
    """A receiver that answers when it is told to."""
    with receiving() as receiver:
        receiver.hold = threading.Event()
        yield receiver


@pytest.mark.parametrize("operation", with_code(409, "idempotency_in_progress"))
def test_a_key_whose_first_request_still_runs_is_409(shop: Estate, slow: Receiver, operation: str) -> None:
    assert slow.hold is not None
    made = created(shop.api.post("/v2/webhooks", json=webhook_body(slow.url)))["webhook"]
    ids = {"webhookId": made["id"]}
    if operation == "retryWebhook":
        slow.hold.set()
        ids["logId"] = done(shop.api.post(f"/v2/webhooks/{made['id']}/test"))["log"]["id"]
        slow.hold.clear()
        slow.arrived.clear()
    view, headers, first = OPERATIONS[operation], {"Idempotency-Key": "slow"}, []
    thread = threading.Thread(target=lambda: first.append(ask(shop.api, view, ids, headers=headers)))
    thread.start()
    assert slow.arrived.wait(10)
    with httpx2.Client(base_url=shop.api.base_url, headers=shop.api.headers, timeout=30, verify=NO_TLS) as second:
        refused(ask(second, view, ids, headers=headers), 409, "idempotency_in_progress")
    slow.hold.set()
    thread.join(10)
    assert done(first[0])["log"]["status"] == "delivered"


def test_every_declared_conflict_has_a_cause_here() -> None:
    assert {code for _, code in DECLARED} == set(CAUSES) | set(ELSEWHERE)


def test_a_sold_out_plan_sells_again_when_a_place_is_free(shop: Estate) -> None:
    plan = make_plan(shop.api, max_subscribers=1)
    done(shop.control.post(f"/orders/{make_order(shop.api, plan)['id']}/pay"))
    refused(shop.api.post("/v2/orders/pix", json=order_of(plan)), 409, "plan_sold_out")
    (held,) = done(shop.api.get("/v2/subscriptions", params={"planId": plan["id"]}))["subscriptions"]
    done(shop.control.post(f"/subscriptions/{held['id']}/cancel"))
    assert shop.api.post("/v2/orders/pix", json=order_of(plan)).status_code == 201


def order_of(plan: Json) -> Json:
    """An order of somebody new."""
    body = body_of(OPERATIONS["createPixOrder"], {"projectId": plan["projectId"], "planId": plan["id"]})
    assert body is not None
    return body
