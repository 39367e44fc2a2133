"""What the event log tells of projects, plans and products: how they began, and how a project was stopped."""

from __future__ import annotations

from collections.abc import Iterable

from ..contract.document import Lifecycle
from ..contract.formats import date_time_ms
from ..domain.projects import COUNTERS
from ..engine.sandbox import Rules
from ..kernel.money import reais
from ..kernel.record import Body, Row, moved_from
from ..store.memory import Store
from .market import Market, Offer


def tell_of_projects(store: Store, market: Market, offers: Iterable[Offer], rules: Rules) -> None:
    """Tell what has happened since somebody listens; each record as it was then, counters and all."""
    stops = {offer.project["id"]: offer.stopped for offer in offers if offer.stopped is not None}
    for project in store.projects.all_rows():
        ident, status = project.id, project.public["status"]
        stopped = stops.get(ident)
        before = "draft" if status == "draft" else "active"
        born = project.public | dict.fromkeys(COUNTERS, 0) | {"status": before}
        at = date_time_ms(born["createdAt"])
        moves = rules.lifecycles["Project"]
        for type_ in _events(moves, "new", before):
            market.tell(at, type_, "projects", born, {}, moved_from(None), ident)
        if stopped is not None and stopped >= market.since:
            then = project.public | _counters(store, ident, stopped)
            for type_ in _events(moves, before, status):
                market.tell(stopped, type_, "projects", then, {}, moved_from(before), ident)
    for plan in store.plans.all_rows():
        for type_ in rules.changes["Plan"].get("created", ()):
            _born(market, type_, "plans", plan, plan.public | {"subscribers_count": 0})
    for product in store.products.all_rows():
        for type_ in rules.changes["Product"].get("created", ()):
            _born(market, type_, "products", product, product.public)


def _events(lifecycle: Lifecycle, from_: str, to: str) -> tuple[str, ...]:
    move = lifecycle.find(from_, to)
    return () if move is None else move.events


def _born(market: Market, type_: str, table: str, row: Row, public: Body) -> None:
    created = public["createdAt"]
    if public["updatedAt"] == created:  # of one that was changed since, the first version is not kept
        market.tell(date_time_ms(created), type_, table, public, {}, project=public["projectId"])


def _counters(store: Store, ident: str, at: int) -> Body:
    """A project's counters at an instant of the past."""
    orders = [row for row in store.orders.rows_of("projectId", ident) if _before(row.public["createdAt"], at)]
    held = [row.public for row in store.subscriptions.rows_of("projectId", ident)]
    held = [public for public in held if _before(public["createdAt"], at)]
    return {
        "plans_count": store.plans.count("projectId", ident),
        "orders_count": len(orders),
        "total_revenue": reais(sum(_net(row, at) for row in orders)),
        "total_subscribers": len({public["customerId"] for public in held}),
        "active_subscribers": len(
            {public["customerId"] for public in held if not public["ended_at"] or not _before(public["ended_at"], at)}
        ),
    }


def _net(order: Row, at: int) -> int:
    paid_at, returned = order.hidden["paid_at"], order.public["last_transaction"].get("refunded_at")
    if paid_at is None or paid_at > at:
        return 0
    kept: int = order.hidden["paid_cents"]
    return kept - order.hidden["refunded_cents"] if returned is not None and _before(returned, at) else kept


def _before(text: str, at: int) -> bool:
    return date_time_ms(text) <= at
