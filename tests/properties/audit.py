"""The last look at a sandbox: every record, list, counter, event and cent, compared
with the model.
"""

from collections.abc import Callable, Iterable
from typing import Any

from . import model_periods as periods
from .bench import Bench
from .client import Disagreement, agree
from .model import Json, Project, World, granted, refused

SORTS = (
    ("orders", "totalAmount"),
    ("orders", "createdAt"),
    ("plans", "amount"),
    ("subscriptions", "next_billing_at"),
)


def audit(bench: Bench) -> None:
    """Everything must be there, and nothing else."""
    world = bench.world
    _same_records(
        bench,
        "customers",
        world.customers,
        lambda found, shown: agree("customer", found.view(), shown),
    )
    _same_records(bench, "plans", world.plans, bench.compare_plan)
    _same_records(
        bench,
        "products",
        world.products,
        lambda found, shown: agree("product", found.view(), shown),
    )
    _same_records(bench, "orders", world.orders, bench.compare_order)
    _same_records(bench, "subscriptions", world.subscriptions, bench.compare_subscription)
    _same_records(
        bench,
        "api_keys",
        world.keys,
        lambda found, shown: agree("key", found.view(world.now), shown),
    )
    _same_records(
        bench,
        "projects",
        world.projects,
        lambda found, shown: agree("project", found.name, shown["name"]),
    )
    for project in world.projects:
        bench.compare_project(project)
        _money(bench, project)
    for ident in bench.gone:
        bench.client.get(ident).hold(refused(404, "not_found"))
    _sorts(bench)
    _purposes(bench)
    _events(bench)
    _newcomers(bench)
    outcome = bench.client.get("/_sandbox/invariants").hold(granted()).body
    agree("invariants", {"ok": True}, outcome)
    if not any(check["checked"] for check in outcome["checks"]):
        raise Disagreement("the sandbox checks nothing of itself")


def _same_records(
    bench: Bench, plural: str, known: Iterable[Any], compare: Callable[[Any, Json], None]
) -> None:
    shown = {record["id"]: record for record in bench.listed(plural)}
    expected = {record.id: record for record in known}
    if set(shown) != set(expected) | bench.strangers[plural]:
        missing = set(expected) - set(shown)
        extra = set(shown) - set(expected) - bench.strangers[plural]
        raise Disagreement(
            f"{plural}: the server lacks {missing}, the model knows nothing of {extra}"
        )
    for ident, record in expected.items():
        compare(record, shown[ident])
    _single_reads(bench, plural, [shown[ident] for ident in expected])


def _single_reads(bench: Bench, plural: str, listed: list[Json]) -> None:
    """A list shows a record as its own address does."""
    if plural in ("subscriptions", "api_keys"):
        return
    for shown in listed[:8]:
        body = bench.client.get(f"/v2/{plural}/{shown['id']}").hold(granted()).body
        single = body if plural == "orders" else body.get("data", body)[plural[:-1]]
        agree(f"{plural} listed and read alone", single, shown)


def _money(bench: Bench, project: Project) -> None:
    """What the orders of a project say they hold, added up without the model, is what the project
    says it earned.
    """
    orders = bench.listed("orders", projectId=project.id, limit=7)
    cents = 0
    for shown in orders:
        payment = shown["last_transaction"]
        if "paid_at" in payment:
            cents += round(shown["totalAmount"] * 100) - round(
                float(payment.get("refunded_amount", "0")) * 100
            )
    body = bench.client.get(f"/v2/projects/{project.id}").hold(granted()).body["data"]["project"]
    agree(f"money of {project.id}", cents, round(body["total_revenue"] * 100))
    agree(f"orders of {project.id}", len(orders), body["orders_count"])
    for status in ("paid", "pending"):
        some = bench.client.get("/v2/orders", projectId=project.id, status=status).body[
            "pagination"
        ]["total"]
        agree(
            f"{status} orders of {project.id}",
            sum(order["status"] == status for order in orders),
            some,
        )


def _sorts(bench: Bench) -> None:
    """What a list is sorted by decides, then the time of creation, then the id."""
    for plural, key in SORTS:
        shown = [record for record in bench.listed(plural) if record[key] is not None]
        shown.sort(key=lambda record: (record[key], record["createdAt"], record["id"]))
        for sort, expected in ((key, shown), (f"-{key}", shown[::-1])):
            found = bench.listed(plural, limit=9, sort=sort)
            ids = [record["id"] for record in found if record[key] is not None]
            agree(f"{plural} sorted by {sort}", [record["id"] for record in expected], ids)


def _purposes(bench: Bench) -> None:
    """What an order was for is hidden, but not from the control surface."""
    for order in bench.world.orders[-8:]:
        hidden = bench.inspect(order.id or "")
        ours = order.subscription and order.subscription.id
        expected = {
            "subscriptionId": ours,
            "customerId": order.customer.id,
            "planId": order.plan.id,
        }
        agree(f"purpose of order {order.id}", expected, hidden)


def _newcomers(bench: Bench) -> None:
    """Of new customers a project's webhook hears when its orders made them, and one of
    all projects always.
    """
    world = bench.world
    for hook, project in bench.hooks.items():
        told = bench.client.get(f"/v2/webhooks/{hook}/logs", event_type="customer.created").hold(
            granted()
        )
        expected = world.events["customer.created"] if project is None else world.newcomers[project]
        agree(
            f"new customers told to the webhook of {project}",
            expected,
            told.body["pagination"]["total"],
        )


def _events(bench: Bench) -> None:
    """Every event that must have happened did so exactly as often."""
    world = bench.world
    total = (
        bench.client.get("/_sandbox/events", limit=1).hold(granted()).body["pagination"]["total"]
    )
    if total - bench.past_events == sum(world.events.values()):
        return
    happened: dict[str, int] = {}
    for event in bench.client.pages("/_sandbox/events", "events"):
        happened[event["type"]] = happened.get(event["type"], 0) + 1
    names = sorted(set(happened) | set(world.events))
    agree(
        "events",
        {name: world.events[name] for name in names},
        {name: happened.get(name, 0) for name in names},
    )


def marks(world: World) -> Iterable[str]:
    """How far a sequence has got."""
    yield from world.reached
    for order in world.orders:
        yield f"order {order.status}"
        if order.refunded and order.status == "paid":
            yield "partial refund"
        if order.renews is not None:
            yield "renewal order"
    for found in world.subscriptions:
        yield f"subscription {found.status}"
        if found.cycle:
            yield "renewed"
        if found.cycle > 2:
            yield "renewed 3+"
        if found.trial is not None:
            yield "trial"
        if (
            found.status == "active"
            and not found.stopped
            and periods.running_period(found, world.now)
        ):
            yield "start moved (S4)"
        if periods.brazilian(found):
            yield "month of Brazil (S8)"
    for project in world.projects:
        yield f"project {project.status}"
