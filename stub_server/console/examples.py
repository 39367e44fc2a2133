"""Replaces ids in the contract's examples by those of records in the sandbox, so that examples can be sent as shown."""

from collections.abc import Callable, Collection, Iterator, Mapping

from ..engine.sandbox import Sandbox
from ..store.memory import Store
from ..store.table import Table

_LOOKED_AT = 100  # newest records among which another one is looked for


def stand_ins(sandbox: Sandbox, base_url: str) -> dict[str, str]:
    """The sandbox's values by the names of `x-example-records`, without those that it has no record for."""
    store, sample = sandbox.store, sandbox.sample
    plan = _kept(store.plans, sample.get("planId"))
    project = _project_of(store, plan) or _kept(store.projects, sample.get("projectId"))
    subscription = _first(_newest(store.subscriptions, "planId", plan)) or _kept(store.subscriptions, None)
    webhook = _first(_newest(store.webhooks, "is_active", True)) or _kept(store.webhooks, None)
    public_key = sandbox.credentials.get("public_key")
    sets = sandbox.rules.lifecycles["Order"].sets
    busy = {*sets["kept"], *sets["payable"]}
    key = None if public_key is None else store.api_keys.holder("public_key", public_key)
    product = _first(_newest(store.products, "projectId", project)) or _kept(store.products, None)
    found = {
        "projectId": project,
        "planId": plan,
        "otherPlanId": _other_plan(store, project, plan),
        "customerId": _kept(store.customers, sample.get("customerId")),
        "orderId": _kept(store.orders, sample.get("orderId")),
        "lastOrderId": _last_order(store, subscription),
        "subscriptionId": subscription,
        "productId": product,
        "webhookId": webhook,
        "logId": _first(_newest(store.webhook_logs, "webhookId", webhook)) or _kept(store.webhook_logs, None),
        "apiKeyId": key,
        "idlePlanId": _other(store.plans, plan, lambda ident: not _is_in_use(store, "planId", ident, busy)),
        "idleProjectId": _other(store.projects, project, lambda ident: not _is_in_use(store, "projectId", ident, busy)),
        "spareProjectId": _other(store.projects, project, lambda ident: _has(store.projects, ident, status="active")),
        "spareProductId": _other(store.products, product, lambda ident: _has(store.products, ident, projectId=project)),
        "spareWebhookId": _other(store.webhooks, webhook),
        "spareApiKeyId": _other(store.api_keys, key),
        "merchantId": store.merchant.id,
        "userId": store.merchant.user_id,
        "publicKey": public_key,
        "baseUrl": base_url,
    }
    return {name: value for name, value in found.items() if value is not None}


def replacements(named: Mapping[str, list[str]], found: Mapping[str, str]) -> dict[bytes, bytes]:
    """From example values in the contract to those in `found`. `named` is the contract's `x-example-records`."""
    return {
        example.encode(): found[name].encode()
        for name, examples in named.items()
        if name in found
        for example in examples
    }


def _kept(table: Table, ident: str | None) -> str | None:
    """The id of a record if it still exists, else of the newest one in the table."""
    if ident is not None and ident in table.keys:
        return ident
    return table.rows[table.order[-1]].id if len(table) else None


def _newest(table: Table, index: str, value: object) -> Iterator[str]:
    return (table.rows[key].id for key in reversed(table.bucket(index, value)))


def _first(idents: Iterator[str]) -> str | None:
    return next(idents, None)


def _project_of(store: Store, plan: str | None) -> str | None:
    public = None if plan is None else store.plans.peek(plan)
    return None if public is None else str(public["projectId"])


def _other_plan(store: Store, project: str | None, plan: str | None) -> str | None:
    """Another plan of the project, preferably active and payable by boleto, as one example is."""
    others = [ident for ident in _newest(store.plans, "projectId", project) if ident != plan]
    return max(others, key=lambda ident: _serves(store, ident), default=None)


def _other(table: Table, ident: str | None, fits: Callable[[str], bool] = bool) -> str | None:
    """Another record than `ident`, preferably one that fits: what ends or changes a record leaves the first alone."""
    newest = (table.rows[key].id for key in table.order[: -_LOOKED_AT - 1 : -1])
    others = [other for other in newest if other != ident]
    return next(filter(fits, others), others[0] if others else None)


def _is_in_use(store: Store, name: str, ident: str, busy: Collection[str]) -> bool:
    """Whether orders in a `busy` state or running subscriptions keep a plan or a project from being deleted."""
    orders = sum(store.orders.count(f"{name}+status", (ident, status)) for status in busy)
    return bool(orders or store.running(name, ident))


def _has(table: Table, ident: str, **members: object) -> bool:
    public = table.peek(ident)
    return public is not None and members.items() <= public.items()


def _serves(store: Store, plan: str) -> tuple[bool, bool]:
    public = store.plans.peek(plan)
    assert public is not None
    return public["status"] == "active", "boleto" in public["payment_methods"]


def _last_order(store: Store, subscription: str | None) -> str | None:
    public = None if subscription is None else store.subscriptions.peek(subscription)
    return None if public is None else str(public["lastOrderId"])
