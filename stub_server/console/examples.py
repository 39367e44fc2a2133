"""The examples of the served contract: ids of the sandbox's records in them, and those of
parameters.
"""

from collections.abc import Callable, Collection, Mapping

from ..contract.document import Document
from ..contract.lifecycles import Lifecycle
from ..contract.source import METHODS, Json, JsonObject
from ..core.record import Body
from ..data.keys import own_pair
from ..engine.sandbox import Sandbox
from ..engine.tables.store import Store
from ..engine.tables.table import Table

_LOOKED_AT = 100  # newest records among which another one is looked for


def stand_ins(sandbox: Sandbox, base_url: str) -> dict[str, str]:
    """The sandbox's values by the names of `x-example-records`, without those that it has
    no record for.
    """
    store, sample = sandbox.store, sandbox.origin.sample
    plan = _kept(store.plans, sample.get("planId"))
    project = _shown(store.plans, plan).get("projectId") or _kept(
        store.projects, sample.get("projectId")
    )
    subscription = _newest(store.subscriptions, "planId", plan)
    webhook = _other(
        store.webhooks,
        None,
        lambda each: each["is_active"] and each["last_delivery_status"] == "delivered",
    )
    sets = sandbox.rules.lifecycles["Order"].sets
    busy = {*sets["kept"], *sets["payable"]}
    public_key, _ = own_pair(sandbox)
    key = store.api_keys.holder("public_key", public_key)
    product = _newest(store.products, "projectId", project)
    found = {
        "projectId": project,
        "planId": plan,
        "otherPlanId": _other(
            store.plans,
            plan,
            lambda each: (
                each["projectId"] == project
                and each["status"] == "active"
                and "boleto" in each["payment_methods"]
            ),
        ),
        "customerId": _kept(store.customers, sample.get("customerId")),
        "orderId": _kept(store.orders, sample.get("orderId")),
        "lastOrderId": _shown(store.subscriptions, subscription).get("lastOrderId"),
        "subscriptionId": subscription,
        "productId": product,
        "webhookId": webhook,
        "logId": _newest(store.webhook_logs, "webhookId", webhook),
        "apiKeyId": key,
        "idlePlanId": _other(
            store.plans, plan, lambda each: not _is_in_use(store, "planId", each["id"], busy)
        ),
        "idleProjectId": _other(
            store.projects,
            project,
            lambda each: not _is_in_use(store, "projectId", each["id"], busy),
        ),
        "spareProjectId": _other(store.projects, project, lambda each: each["status"] == "active"),
        "spareProductId": _other(
            store.products, product, lambda each: each["projectId"] == project
        ),
        "spareWebhookId": _other(store.webhooks, webhook),
        "spareApiKeyId": _other(store.api_keys, key),
        "merchantId": store.merchant.id,
        "userId": store.merchant.user_id,
        "publicKey": public_key,
        "baseUrl": base_url,
    }
    return {name: value for name, value in found.items() if value is not None}


def aim(document: JsonObject, sandbox: Sandbox) -> None:
    """Have each example of a control that moves a record name one in a state from
    which it moves.
    """
    for operation in Document(document).operations.values():
        for lifecycle in sandbox.rules.lifecycles.values():
            parameter = f"{lifecycle.resource[0].lower()}{lifecycle.resource[1:]}Id"
            moves = [move for move in lifecycle.moves if operation.id in move.by]
            own = [
                move
                for move in moves
                if move.control and operation.id.startswith(move.control.partition("_")[0])
            ]
            from_ = {move.from_ for move in own or moves}
            ident = _in_a_state(sandbox.store, lifecycle, from_) if from_ else None
            for each in operation.raw.get("parameters", ()):
                if ident is not None and each.get("name") == parameter:
                    for example in each.get("examples", {}).values():
                        example["value"] = ident


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


def _shown(table: Table, ident: str | None) -> Body:
    """What a record shows, nothing where there is none."""
    return (table.peek(ident) if ident is not None else None) or {}


def _kept(table: Table, ident: str | None) -> str | None:
    """The id of a record if it still exists, else of the newest one in the table."""
    if ident is not None and ident in table.keys:
        return ident
    return table.rows[table.order[-1]].id if len(table) else None


def _newest(table: Table, index: str, value: object) -> str | None:
    """The id of the newest record with a value, else of the newest one in the table."""
    keys = table.bucket(index, value)
    return table.rows[keys[-1]].id if keys else _kept(table, None)


def _other(table: Table, ident: str | None, fits: Callable[[Body], object] = bool) -> str | None:
    """Another record than `ident`, preferably one that fits: what ends or changes a record leaves
    the first alone.
    """
    newest = (table.rows[key].id for key in table.order[: -_LOOKED_AT - 1 : -1])
    others = [other for other in newest if other != ident]
    return next(
        (other for other in others if fits(_shown(table, other))), others[0] if others else None
    )


def _is_in_use(store: Store, name: str, ident: str, busy: Collection[str]) -> bool:
    """Whether orders in a `busy` state or running subscriptions keep a plan or a project
    from being deleted.
    """
    orders = sum(store.orders.count(f"{name}+status", (ident, status)) for status in busy)
    return bool(orders or store.running(name, ident))


# -- of parameters


def with_examples_of_parameters(document: JsonObject) -> JsonObject:
    """The document with an example of each id in a path for each example of the request or the
    answer.

    Tools that send examples pair those of one name. A parameter's file has one `example` for all
    operations, or one by each name, so shared parameters are written out.
    """
    shared = document["components"].get("parameters", {})
    if not any(_has_own_example(parameter) for parameter in shared.values()):
        return document
    whole = Document(document)
    paths = {
        path: {
            key: _with_examples(value, whole) if key in METHODS else value
            for key, value in item.items()
        }
        for path, item in document["paths"].items()
    }
    operations = (item[key] for item in paths.values() for key in item.keys() & METHODS)
    named = {
        str(each.get("$ref")).rpartition("/")[2]
        for raw in operations
        for each in raw.get("parameters", ())
    }
    others = {name: parameter for name, parameter in shared.items() if name in named}
    return {
        **document,
        "paths": paths,
        "components": {**document["components"], "parameters": others},
    }


def _with_examples(operation: JsonObject, document: Document) -> JsonObject:
    if "parameters" not in operation:
        return operation
    answers = [
        answer for status, answer in operation["responses"].items() if str(status).startswith("2")
    ]
    shown = {name: None for answer in answers for name in _examples(document.resolve(answer))}
    names = _examples(operation.get("requestBody", {})) or list(shown)
    parameters = []
    for parameter in operation["parameters"]:
        whole = document.resolve(parameter)
        if _has_own_example(whole):
            parameter = whole
            if names:
                parameter = {key: value for key, value in whole.items() if key != "example"}
                parameter["examples"] = {name: {"value": _value_of(whole, name)} for name in names}
        parameters.append(parameter)
    return {**operation, "parameters": parameters}


def _has_own_example(parameter: JsonObject) -> bool:
    return parameter.get("in") == "path" and ("example" in parameter or "examples" in parameter)


def _value_of(parameter: JsonObject, name: str) -> Json:
    """The example of a parameter that goes with the operation's example of this name."""
    if "example" in parameter:
        return parameter["example"]
    named = parameter["examples"]
    return named.get(name, next(iter(named.values())))["value"]


def _examples(message: JsonObject) -> list[str]:
    """The names of the examples of a request or an answer."""
    return [
        name for media in message.get("content", {}).values() for name in media.get("examples", {})
    ]
