"""Refusals of the rules of the API: what is asked conflicts with what is stored."""

import threading

import httpx2

from stub_server.contract.document import Operation

from ..estate import Estate, webhook_body
from ..live import NO_TLS
from ..make import Json, created, make_customer, make_project
from ..receiver import receiving
from ..requests import OPERATIONS, ask, body_of, path_of
from .row import EVERY, Answer, Read, Row, create

CNPJ = "11222333000181"


def name_taken(shop: Estate, operation: Operation) -> Answer:
    """In whatever letters."""
    what = "Project" if "Project" in operation.id else "Plan"
    created(create(shop, OPERATIONS[f"create{what}"], name="Um nome"))
    return create(shop, operation, name="UM NOME")


def document_taken(shop: Estate, operation: Operation) -> Answer:
    """The document of another customer."""
    return create(shop, operation, document=make_customer(shop.api)["document"])


def document_of_another_type(shop: Estate, operation: Operation) -> Answer:
    """The document of a company for a person."""
    if "Order" in operation.id:
        buyer = {
            "name": "Loja",
            "email": "loja@example.com",
            "document": CNPJ,
            "type": "individual",
        }
        return create(shop, operation, customer=buyer)
    return create(shop, operation, document=CNPJ, document_type="cpf")


def wrong_total(shop: Estate, operation: Operation) -> Answer:
    """A total that the items do not add up to, where amounts are strict."""
    assert shop.control.patch("/settings", json={"strict_amounts": True}).status_code == 200
    return create(shop, operation, totalAmount=1)


def sku_taken(shop: Estate, operation: Operation) -> Answer:
    """The SKU of another product."""
    created(create(shop, OPERATIONS["createProduct"], sku="VIOLAO-1"))
    return create(shop, operation, sku="VIOLAO-1")


def url_taken(shop: Estate, operation: Operation) -> Answer:
    """The address of another webhook of the project."""
    body = webhook_body(shop.receiver, projectId=shop.ids["projectId"])
    created(shop.api.post("/v2/webhooks", json=body))
    return create(shop, operation, url=body["url"], projectId=body["projectId"])


def long_name(shop: Estate, operation: Operation) -> Answer:
    """A key of metadata that is one character too long."""
    return create(shop, operation, metadata={"x" * 65: "1"})


def of_archived(shop: Estate, operation: Operation) -> Answer:
    """In a project that was archived."""
    assert shop.api.post(f"/v2/projects/{shop.ids['projectId']}/archive").status_code == 200
    return ask(shop.api, operation, shop.ids)


def in_use(shop: Estate, operation: Operation) -> Answer:
    """Of a project or plan with a subscriber."""
    if operation.id == "updatePlan":
        return create(shop, operation, interval="year")
    return ask(shop.api, operation, shop.ids)


def suspend(shop: Estate) -> None:
    """Suspend the merchant's project."""
    assert shop.api.post(f"/v2/projects/{shop.ids['projectId']}/suspend").status_code == 200


def suspended(shop: Estate, operation: Operation) -> Answer:
    """In a suspended project."""
    suspend(shop)
    return create(shop, operation)


def renewed_while_suspended(shop: Estate) -> Answer:
    """A subscription of a suspended project."""
    suspend(shop)
    return shop.control.post(f"/subscriptions/{shop.ids['subscriptionId']}/renew")


def with_plan(shop: Estate, operation: Operation, **changes: object) -> Answer:
    """For a plan that was changed before."""
    assert shop.api.put(f"/v2/plans/{shop.ids['planId']}", json=changes).status_code == 200
    return create(shop, operation)


def takes_no_such_method(read: Read, body: Json) -> bool:
    """The plan of an order does not take its payment method."""
    plan = read(f"/v2/plans/{body['planId']}").get("plan")
    return plan is not None and body["paymentMethod"] not in plan["payment_methods"]


def impossible_move(shop: Estate, operation: Operation) -> Answer:
    """Back to draft where an operation can ask for that, out of the archive, or from
    draft to suspended.
    """
    if operation.id in ("updateProject", "updateProjectStatus"):
        return shop.api.request(
            operation.method, path_of(operation, shop.ids), json={"status": "draft"}
        )
    if operation.id == "activateProject":
        return of_archived(shop, operation)
    return ask(shop.api, operation, {"projectId": make_project(shop.api, status="draft")["id"]})


def twenty_webhooks(shop: Estate, operation: Operation) -> Answer:
    """One more than a merchant may have."""
    for _ in range(19):
        created(shop.api.post("/v2/webhooks", json=webhook_body(shop.receiver)))
    return create(shop, operation)


def log_of_deleted(shop: Estate, operation: Operation) -> Answer:
    """A delivery of a webhook that was deleted."""
    assert shop.api.delete(f"/v2/webhooks/{shop.ids['webhookId']}").status_code == 200
    return ask(shop.api, operation, shop.ids)


def cancelled_log(shop: Estate, operation: Operation) -> Answer:
    """A webhook is switched off before its delivery has arrived, which is cancelled."""
    body = webhook_body("http://127.0.0.1:9", events=["customer.created"])
    webhook = created(shop.api.post("/v2/webhooks", json=body))["webhook"]
    make_customer(shop.api)
    assert (
        shop.api.put(f"/v2/webhooks/{webhook['id']}", json={"is_active": False}).status_code == 200
    )
    (log,) = shop.api.get(f"/v2/webhooks/{webhook['id']}/logs").json()["logs"]
    return ask(shop.api, operation, {"logId": log["id"]})


_CHANGES: dict[str, Json] = {
    "regenerateWebhookSigningKey": {"grace_period_seconds": 5},
    "sendTestWebhook": {"event_type": "order.paid"},
    "createApiKey": {"name": "Outra"},
    "createProduct": {"name": "Outro curso"},
}


def another_request(shop: Estate, operation: Operation) -> Answer:
    """A key that was used with another body; where there is none, with another query."""
    headers = {"Idempotency-Key": '"checkout-7"'}
    ids = shop.ids
    if operation.id == "activateProject":
        ids = ids | {"projectId": make_project(shop.api, status="draft")["id"]}
    first = ask(shop.api, operation, ids, headers=headers)
    assert first.is_success, first.text
    if operation.body is None:
        return ask(shop.api, operation, ids, headers=headers, params={"again": "1"})
    body = (body_of(operation, ids) or {}) | _CHANGES.get(operation.id, {})
    return ask(shop.api, operation, ids, headers=headers, json=body or {"reason": "Outra vez"})


def while_the_first_runs(shop: Estate, operation: Operation) -> Answer:
    """A key whose first request waits for its receiver."""
    headers = {"Idempotency-Key": "slow"}
    with receiving() as slow:
        webhook = created(shop.api.post("/v2/webhooks", json=webhook_body(slow.url)))["webhook"]
        ids = {"webhookId": webhook["id"]}
        if operation.id == "retryWebhook":
            ids["logId"] = shop.api.post(f"/v2/webhooks/{webhook['id']}/test").json()["log"]["id"]
            slow.arrived.clear()
        slow.hold = threading.Event()
        first = []
        thread = threading.Thread(
            target=lambda: first.append(ask(shop.api, operation, ids, headers=headers))
        )
        thread.start()
        assert slow.arrived.wait(10)
        with httpx2.Client(
            base_url=shop.api.base_url, headers=shop.api.headers, timeout=30, verify=NO_TLS
        ) as second:
            refusal = ask(second, operation, ids, headers=headers)
        slow.hold.set()
        thread.join(10)
    assert first[0].json()["log"]["status"] == "delivered"
    return refusal


RULES = [
    Row(
        "invalid_state_transition",
        409,
        impossible_move,
        lambda shop: shop.control.post(f"/orders/{shop.ids['orderId']}/expire"),
        at="activateProject",
        another=("activateProject",),
        is_modelled=True,
    ),
    Row(
        "project_not_active",
        409,
        suspended,
        renewed_while_suspended,
        is_modelled=True,
    ),
    Row(
        "project_archived",
        409,
        of_archived,
        at="createPlan",
        another=EVERY,
        is_modelled=True,
    ),
    Row(
        "project_has_activity",
        409,
        in_use,
        another=EVERY,
        is_modelled=True,
    ),
    Row(
        "plan_not_active",
        409,
        lambda shop, operation: with_plan(shop, operation, status="inactive"),
        is_modelled=True,
    ),
    Row(
        "plan_sold_out",
        409,
        lambda shop, operation: with_plan(shop, operation, max_subscribers=1),
        is_modelled=True,
    ),
    Row(
        "amount_mismatch",
        409,
        wrong_total,
    ),
    Row(
        "plan_in_use",
        409,
        in_use,
        at="deletePlan",
        another=("deletePlan",),
        is_modelled=True,
    ),
    Row(
        "payment_method_not_allowed",
        409,
        lambda shop, operation: with_plan(shop, operation, payment_methods=["boleto"]),
        is_modelled=True,
        when=takes_no_such_method,
    ),
    Row(
        "duplicate_document",
        409,
        document_taken,
        is_modelled=True,
    ),
    Row("duplicate_name", 409, name_taken, is_modelled=True),
    Row("duplicate_sku", 409, sku_taken, is_modelled=True),
    Row("duplicate_url", 409, url_taken),
    Row(
        "document_type_conflict",
        409,
        document_of_another_type,
        at="createCustomer",
        is_modelled=True,
    ),
    Row("metadata_key_invalid", 409, long_name),
    Row("webhook_limit", 409, twenty_webhooks),
    Row(
        "webhook_deleted",
        409,
        log_of_deleted,
        another=EVERY,
    ),
    Row(
        "log_not_retryable",
        409,
        cancelled_log,
        another=EVERY,
    ),
    Row(
        "idempotency_key_reused",
        409,
        another_request,
        is_modelled=True,
    ),
    Row(
        "idempotency_in_progress",
        409,
        while_the_first_runs,
    ),
]
