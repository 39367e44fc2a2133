"""Refusals of what is asked: no such path or record, no JSON, or what the schemas do not accept."""

import httpx2

from stub_server.contract.document import Operation

from ..estate import Estate
from ..live import NO_TLS
from ..make import Json
from ..requests import JSON, UNKNOWN, ask
from .row import EVERY, Answer, Row, create, having, send

_REFERENCES = {
    "createApiKey": "allowed_projects",
    "updateApiKey": "allowed_projects",
    "updateProduct": "planIds",
    "createPixOrder": "planId",
}
"""The member that names a record, where it is not `projectId`."""


_INVALID: dict[str, Json] = {
    "Customers": {
        "document": "93541134700",
        "phones": {"mobile_phone": {"country_code": "55", "number": "987654321"}},
    },
    "Plans": {"amount": "49,90"},
    "Orders": {
        "items": [{"description": "Plano Mensal", "quantity": 0, "amount": 49.9}],
        "customer": {
            "name": "Marina Duarte",
            "email": "marina@example.com",
            "document": "11144477736",
        },
    },
    "Webhooks": {"url": "shop.example/hooks", "events": ["order.payed"]},
    "updateProjectStatus": {"status": "closed"},
    "activateProject": {"reason": 5},
    "suspendProject": {"reason": 5},
    "archiveProject": {"reason": 5},
    "regenerateWebhookSigningKey": {"grace_period_seconds": -1},
    "sendTestWebhook": {"event_type": "order.payed"},
}
"""Members of the bodies of a tag or an operation that the schemas do not accept, where it is not
the name.
"""


def invalid(shop: Estate, operation: Operation) -> Answer:
    """What the example of the operation shows: members, a parameter or a header that the schemas do
    not accept.
    """
    queries = {parameter.name for parameter in operation.parameters if parameter.place == "query"}
    if operation.body is not None:
        members = _INVALID.get(operation.id) or _INVALID.get(operation.tag, {"name": 5})
        return create(shop, operation, **members)
    if "limit" in queries:
        return ask(shop.api, operation, shop.ids, params={"limit": "500"})
    if queries:
        return ask(shop.api, operation, shop.ids, params={"from": "yesterday"})
    return ask(shop.api, operation, shop.ids, headers={"Idempotency-Key": "cart 1"})


def referring(operation: Operation) -> str:
    """The member of the operation's body that names a record."""
    return _REFERENCES.get(operation.id, "projectId")


def of_nothing(shop: Estate, operation: Operation) -> Answer:
    """A body that names a record which does not exist."""
    member = referring(operation)
    return create(shop, operation, **{member: [UNKNOWN] if member.endswith("s") else UNKNOWN})


CONTRACT = [
    Row(
        "malformed_request",
        400,
        send("GET", "/v2/plans", headers={"Prefer": "code=418"}),
        is_anywhere=True,
    ),
    Row(
        "malformed_json",
        400,
        having(
            content=b"{'name': 'Ana', 'email': 'ana@example.com', 'document': '34712695846',}",
            headers={"Content-Type": JSON},
        ),
        at="createCustomer",
    ),
    Row(
        "not_found",
        404,
        lambda shop, operation: ask(shop.api, operation),
        lambda shop: shop.control.post(f"/orders/{UNKNOWN}/pay"),
        at="getOrder",
        another=EVERY,
        is_modelled=True,
    ),
    Row(
        "reference_not_found",
        409,
        of_nothing,
        at="createPlan",
        is_modelled=True,
    ),
    Row(
        "merchant_not_found",
        404,
        lambda shop, operation: ask(shop.api, operation),
        at="getMerchantByPublicKey",
        another=EVERY,
    ),
    Row(
        "sandbox_not_found",
        404,
        lambda shop, operation: httpx2.get(f"{shop.live.url}/s/-/v2/plans", verify=NO_TLS),
        is_anywhere=True,
    ),
    Row(
        "route_not_found",
        404,
        send("GET", "/v2/custommers"),
        is_anywhere=True,
    ),
    Row(
        "method_not_allowed",
        405,
        send("DELETE", "/v2/customers"),
        another=EVERY,
        is_anywhere=True,
    ),
    Row(
        "payload_too_large",
        413,
        having(content=b" " * 1_048_577, headers={"Content-Type": JSON}),
        at="createCustomer",
    ),
    Row(
        "unsupported_media_type",
        415,
        having(
            content=b"name=Ana&email=ana%40example.com&document=21844730654",
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        ),
        at="createCustomer",
    ),
    Row(
        "validation_error",
        422,
        invalid,
        at="createCustomer",
    ),
]
