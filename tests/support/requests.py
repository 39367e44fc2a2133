"""For every operation a request that the contract takes, aimed at given ids."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from stub_server.contract.document import Operation

from .contract import document
from .make import Json, customer_body, fresh_cpf, order_body

UNKNOWN = "00000000-0000-4000-8000-000000000000"
NOBODY = {"publicKey": "pk_sandbox_" + "0" * 24}
OPERATIONS = document().operations
JSON = "application/json"
# What is done in the end, because it takes away what the others need.
LAST = [
    "suspendProject",
    "activateProject",
    "deleteProduct",
    "deleteWebhook",
    "deleteApiKey",
    "archiveProject",
]
_serial = itertools.count(1)

Ids = Mapping[str, str]


def _buyer() -> Json:
    document_ = fresh_cpf()
    return {"name": "Marina Duarte", "email": f"m.{document_}@example.com", "document": document_}


def _order(ids: Ids) -> Json:
    return order_body(ids.get("projectId", UNKNOWN), ids.get("planId", UNKNOWN), customer=_buyer())


BODIES: dict[str, Callable[[Ids], Json]] = {
    "createApiKey": lambda ids: {"name": "Chave", "scopes": ["orders:read"]},
    "updateApiKey": lambda ids: {"description": "Da loja"},
    "createCustomer": lambda ids: customer_body(),
    "updateCustomer": lambda ids: {"name": "Marina Duarte Lima"},
    "createPlan": lambda ids: {
        "projectId": ids.get("projectId", UNKNOWN),
        "name": f"Plano {next(_serial)} de teste",
        "amount": 19.9,
    },
    "updatePlan": lambda ids: {"description": "Mais aulas"},
    "createOrder": _order,
    "createPixOrder": _order,
    "createProject": lambda ids: {"name": f"Projeto {next(_serial)} de teste"},
    "updateProject": lambda ids: {"description": "Aulas ao vivo"},
    "updateProjectStatus": lambda ids: {"status": "active"},
    "createProduct": lambda ids: {
        "projectId": ids.get("projectId", UNKNOWN),
        "name": "Curso de violão",
    },
    "updateProduct": lambda ids: {"description": "Com apostila"},
    "createWebhook": lambda ids: {
        "url": f"https://hooks.example.com/{next(_serial)}",
        "events": ["webhook.test"],
        "projectId": ids.get("projectId", UNKNOWN),
    },
    "updateWebhook": lambda ids: {"name": "Loja"},
}

# What an operation without an id in its path is asked about.
QUERIES: dict[str, Callable[[Ids], Json]] = {
    "getAnalytics": lambda ids: {"projectId": ids["projectId"]} if "projectId" in ids else {},
}


def path_of(operation: Operation, ids: Ids) -> str:
    """The operation's path with these ids in it, and ids of nothing for the rest."""
    known = {name: UNKNOWN for name in ("apiKeyId", "customerId", "planId", "orderId", "projectId")}
    known |= {"productId": UNKNOWN, "webhookId": UNKNOWN, "logId": UNKNOWN, **NOBODY, **ids}
    return operation.path.format_map(known)


def body_of(operation: Operation, ids: Ids) -> Json | None:
    """A body that the contract takes; None where none is needed."""
    make = BODIES.get(operation.id)
    assert make is not None or not operation.body_required, f"{operation.id} needs a body"
    return None if make is None else make(ids)


def ask(
    api: httpx2.Client, operation: Operation, ids: Ids | None = None, **options: Any
) -> httpx2.Response:
    """Send the operation's request through a client; options as the client's
    `request` takes them.
    """
    ids = ids or {}
    if "content" not in options and "json" not in options:
        body = body_of(operation, ids)
        options |= {} if body is None else {"json": body}
    if operation.id in QUERIES and "params" not in options:
        options["params"] = QUERIES[operation.id](ids)
    return api.request(operation.method, path_of(operation, ids), **options)


def with_code(status: int, *codes: str) -> list[str]:
    """The operations that document one of these codes for a status."""
    return [
        operation.id
        for operation in OPERATIONS.values()
        if status in operation.responses and set(codes) & set(operation.responses[status].codes)
    ]
