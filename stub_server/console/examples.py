"""The examples of the served contract: ids of the sandbox's records in them."""

from collections.abc import Callable, Collection, Mapping

from ..contract.document import Document
from ..contract.lifecycles import Lifecycle
from ..contract.source import JsonObject
from ..core.record import Body
from ..data.keys import own_pair
from ..engine.sandbox import Sandbox
from ..engine.tables.store import Store

_LOOKED_AT = 100  # newest records among which one that fits is looked for
Fits = Callable[[Body, Mapping[str, str], Store], object]
"""Whether a record is what an example needs, by those that were found before."""


def _is_for_sale(each: Body, found: Mapping[str, str], store: Store) -> bool:
    """Whether a plan of the project can be bought by boleto."""
    is_active = each["status"] == "active" and "boleto" in each["payment_methods"]
    return is_active and _is_of_project(each, found, store)


def _is_of_project(each: Body, found: Mapping[str, str], store: Store) -> bool:
    return bool(each["projectId"] == found.get("projectId"))


def _is_idle(each: Body, found: Mapping[str, str], store: Store) -> bool:
    """Whether neither orders nor running subscriptions keep a plan or a project from being
    deleted.
    """
    name = "planId" if "projectId" in each else "projectId"
    return not store.running(name, each["id"]) and not store.orders.bucket(name, each["id"])


_RECORDS: dict[str, tuple[str, Fits | None]] = {
    "projectId": ("projects", None),
    "planId": ("plans", _is_of_project),
    "otherPlanId": ("plans", _is_for_sale),
    "idlePlanId": ("plans", _is_idle),
    "idleProjectId": ("projects", _is_idle),
    "spareProjectId": ("projects", lambda each, *_: each["status"] == "active"),
    "productId": ("products", _is_of_project),
    "spareProductId": ("products", _is_of_project),
    "customerId": ("customers", None),
    "orderId": ("orders", None),
    "subscriptionId": (
        "subscriptions",
        lambda each, found, _: each["planId"] == found.get("planId"),
    ),
    "webhookId": ("webhooks", lambda each, *_: each["last_delivery_status"] == "delivered"),
    "spareWebhookId": ("webhooks", None),
    "logId": ("webhook_logs", lambda each, found, _: each["webhookId"] == found.get("webhookId")),
    "spareApiKeyId": ("api_keys", None),
}
"""Names of `x-example-records` with their table, and what the record should be."""


def stand_ins(sandbox: Sandbox, base_url: str) -> dict[str, str]:
    """The sandbox's values by the names of `x-example-records`, without those that it has
    no record for.

    Later names of a table leave the record of the first one alone: what they name is ended or
    changed.
    """
    store, sample = sandbox.store, sandbox.origin.sample
    public_key, _ = own_pair(sandbox)
    found = {
        "merchantId": store.merchant.id,
        "userId": store.merchant.user_id,
        "publicKey": public_key,
        "baseUrl": base_url,
    }
    firsts: dict[str, str] = {}
    key = store.api_keys.holder("public_key", public_key)
    if key is not None:
        found["apiKeyId"] = firsts["api_keys"] = key
    for name, (table, fits) in _RECORDS.items():
        ident = sample.get(name)
        if ident not in store.tables[table].keys:
            ident = _newest(store, table, firsts.get(table, ""), found, fits)
        if ident is not None:
            found[name] = ident
            firsts.setdefault(table, ident)
    if "subscriptionId" in found:
        last = store.subscriptions.peek(found["subscriptionId"]) or {}
        found["lastOrderId"] = last.get("lastOrderId") or found.get("orderId", "")
    return found


def _newest(
    store: Store, name: str, first: str, found: Mapping[str, str], fits: Fits | None
) -> str | None:
    """The newest record of a table that fits, besides the first; where none fits, the newest."""
    table = store.tables[name]
    newest = [table.rows[key].id for key in table.order[: -_LOOKED_AT - 1 : -1]]
    others = [ident for ident in newest if ident != first]
    for ident in others:
        if fits is None or fits(table.peek(ident) or {}, found, store):
            return ident
    return next(iter(others), None)


def aim(document: JsonObject, sandbox: Sandbox) -> None:
    """Have each example of a control that moves a record name one in a state from
    which it moves.
    """
    whole = Document(document)
    for operation in whole.operations.values():
        for lifecycle in sandbox.rules.lifecycles.values():
            moves = [move for move in lifecycle.moves if operation.id in move.by]
            own = [
                move
                for move in moves
                if move.control and operation.id.startswith(move.control.partition("_")[0])
            ]
            from_ = {move.from_ for move in own or moves}
            ident = _in_a_state(sandbox.store, lifecycle, from_) if from_ else None
            name = f"{lifecycle.resource[0].lower()}{lifecycle.resource[1:]}Id"
            for number, parameter in enumerate(operation.raw.get("parameters", ())):
                shown = whole.resolve(parameter)
                if ident is not None and shown["name"] == name:
                    operation.raw["parameters"][number] = shown | {"example": ident}


def _in_a_state(store: Store, lifecycle: Lifecycle, states: Collection[str]) -> str | None:
    """The newest record of a lifecycle in one of some states."""
    table = next(
        table for table in store.tables.values() if table.spec.schema == lifecycle.resource
    )
    if lifecycle.field not in table.spec.views.indexes:
        return None
    keys = [key for state in states for key in table.bucket(lifecycle.field, state)[-1:]]
    return table.rows[max(keys)].id if keys else None


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
