"""The examples of the served contract: ids of the sandbox's records in them, and those of
paths.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..contract.document import Document
from ..contract.source import Json, operations_in
from ..core.record import Body
from ..data.keys import own_pair
from ..engine.sandbox import Sandbox
from ..engine.tables.store import Store

_LOOKED_AT = 100  # newest records among which one that fits is looked for


class Wanted(NamedTuple):
    """The record that an example needs: its table; an index with the value that it has there, or
    the name of an id that was found before; and what else it must be.

    A spare one is ended or changed: it is not the first that the table has a name for.
    """

    table: str
    by: str = ""
    value: str = ""
    fits: Callable[[Body, Store], object] | None = None
    is_spare: bool = False


def _is_for_sale(plan: Body, store: Store) -> bool:
    """Whether a plan can be bought by boleto."""
    return plan["status"] == "active" and "boleto" in plan["payment_methods"]


def _is_idle(each: Body, store: Store) -> bool:
    """Whether neither orders nor running subscriptions keep a plan or a project from being
    deleted.
    """
    name = "planId" if "projectId" in each else "projectId"
    return not store.running(name, each["id"]) and not store.orders.bucket(name, each["id"])


def _is_renewed(subscription: Body, store: Store) -> bool:
    """Whether a subscription can be renewed: its project is active, and its last order paid."""
    project = store.projects.peek(subscription["projectId"]) or {}
    order = store.orders.peek(subscription["lastOrderId"]) or {}
    return project.get("status") == "active" and bool(order.get("status") == "paid")


def _is_reached(webhook: Body, store: Store) -> bool:
    """Whether a webhook's receiver answers."""
    return bool(webhook["last_delivery_status"] == "delivered")


_RECORDS = {
    "projectId": Wanted("projects"),
    "planId": Wanted("plans", "projectId", "projectId"),
    "otherPlanId": Wanted("plans", "projectId", "projectId", _is_for_sale, is_spare=True),
    "idlePlanId": Wanted("plans", fits=_is_idle, is_spare=True),
    "idleProjectId": Wanted("projects", fits=_is_idle, is_spare=True),
    "spareProjectId": Wanted("projects", "status", "active", is_spare=True),
    "productId": Wanted("products", "projectId", "projectId"),
    "spareProductId": Wanted("products", "projectId", "projectId", is_spare=True),
    "customerId": Wanted("customers"),
    "orderId": Wanted("orders"),
    "pendingOrderId": Wanted("orders", "status", "pending"),
    "paidOrderId": Wanted("orders", "status", "paid"),
    "disputedOrderId": Wanted("orders", "status", "disputed"),
    "subscriptionId": Wanted("subscriptions", "planId", "planId"),
    "activeSubscriptionId": Wanted("subscriptions", "status", "active", _is_renewed),
    "pastDueSubscriptionId": Wanted("subscriptions", "status", "past_due"),
    "webhookId": Wanted("webhooks", fits=_is_reached),
    "spareWebhookId": Wanted("webhooks", is_spare=True),
    "logId": Wanted("webhook_logs", "webhookId", "webhookId"),
    "spareApiKeyId": Wanted("api_keys", is_spare=True),
}
"""By the names of `x-example-records`."""


def stand_ins(sandbox: Sandbox) -> dict[str, str]:
    """The sandbox's values by the names of `x-example-records`, without those that it has
    no record for.
    """
    store, sample = sandbox.store, sandbox.origin.sample
    public_key, _ = own_pair(sandbox)
    found = {
        "merchantId": store.merchant.id,
        "userId": store.merchant.user_id,
        "publicKey": public_key,
    }
    firsts: dict[str, str] = {}
    key = store.api_keys.holder("public_key", public_key)
    if key is not None:
        found["apiKeyId"] = firsts["api_keys"] = key
    for name, wanted in _RECORDS.items():
        ident = sample.get(name)
        if ident not in store.tables[wanted.table].keys:
            first = firsts.get(wanted.table) if wanted.is_spare else None
            ident = _newest(store, wanted, first, found)
        if ident is not None:
            found[name] = ident
            firsts.setdefault(wanted.table, ident)
    if "subscriptionId" in found:
        last = store.subscriptions.peek(found["subscriptionId"]) or {}
        found["lastOrderId"] = last.get("lastOrderId") or found.get("orderId", "")
    return found


def _newest(
    store: Store, wanted: Wanted, first: str | None, found: Mapping[str, str]
) -> str | None:
    """The newest record that is wanted, besides the first; where there is none, the newest."""
    table = store.tables[wanted.table]
    keys = table.order
    if wanted.by:
        keys = table.bucket(wanted.by, found.get(wanted.value, wanted.value))
    newest = [*keys[: -_LOOKED_AT - 1 : -1], *table.order[:-3:-1]]
    others = [table.rows[key].id for key in newest if table.rows[key].id != first]
    for ident in others:
        if wanted.fits is None or wanted.fits(table.peek(ident) or {}, store):
            return ident
    return next(iter(others), None)


def replacements(named: Mapping[str, list[str]], found: Mapping[str, str]) -> dict[bytes, bytes]:
    """From example values in the contract to those in `found`.

    `named` is the contract's `x-example-records`.
    """
    return {
        example.encode(): found[name].encode()
        for name, examples in named.items()
        if name in found
        for example in examples
    }


def name_examples_of_paths(contract: Json) -> None:
    """Give the example of each id in a path the names of its request's examples, else of the
    answer's: tools that send examples pair those of one name.

    What operations share is written out for that.
    """
    document, shared = Document(contract), set[str]()
    for _, _, operation in operations_in(contract):
        names = _names(operation.get("requestBody", {}))
        for status, answer in operation["responses"].items():
            if status.startswith("2"):
                names = names or _names(document.resolve(answer))
        for number, each in enumerate(operation.get("parameters", ())):
            parameter = dict(document.resolve(each))
            if names and parameter["in"] == "path" and "example" in parameter:
                example = {"value": parameter.pop("example")}
                parameter["examples"] = {name: example for name in names}
                operation["parameters"][number] = parameter
            else:
                shared.add(each.get("$ref", "").rpartition("/")[2])
    parameters = contract["components"]["parameters"]
    for name in parameters.keys() - shared:
        del parameters[name]


def _names(message: Json) -> list[str]:
    """The names of the examples of a request or an answer."""
    return [
        name for media in message.get("content", {}).values() for name in media.get("examples", ())
    ]
