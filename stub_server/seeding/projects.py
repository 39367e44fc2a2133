"""The merchant's projects with their plans and products, old enough to have a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from ..domain.plans import new_plan
from ..domain.products import new_product
from ..domain.projects import new_project
from ..kernel.clock import DAY, HOUR, iso
from ..kernel.ids import named_uuid
from ..kernel.record import Body
from ..store.memory import Store
from .market import Offer
from .niches import ProjectBlueprint
from .plans import PERIODS
from .pools import fold
from .rhythm import office_hour
from .scenario import ProjectSpec

#: How sales split between plans of the same project: monthly 55, yearly 35, the rest 10.
PLAN_SHARES = {"monthly": 55.0, "yearly": 35.0, "quarterly": 7.0, "lifetime": 3.0}


@dataclass(frozen=True, slots=True)
class Shelf:
    """One project to be, with what is sold in it: PlanCreate bodies without projectId, and their shares of sales."""

    spec: ProjectSpec
    blueprint: ProjectBlueprint
    plans: tuple[tuple[Body, float], ...]


def drawn_plans(blueprint: ProjectBlueprint) -> tuple[tuple[Body, float], ...]:
    """The blueprint's plans with the usual shares."""
    return tuple((plan.fields, PLAN_SHARES[PERIODS[plan.name][2]]) for plan in blueprint.plans)


def stock(
    store: Store,
    blanks: Mapping[str, Body],
    shelves: Sequence[Shelf],
    rng: Random,
    start: int,
    now: int,
) -> list[Offer]:
    """Write the projects, and answer what is for sale in them and when. `start` is when the merchant began."""
    offers: list[Offer] = []
    for number, shelf in enumerate(shelves):
        opened = office_hour(rng, start + (1 + 2 * number) * DAY)
        if shelf.spec.status == "draft":
            opened = office_hour(rng, now - 9 * DAY)
        offers += _project(store, blanks, shelf, rng, min(opened, now - HOUR), now)
    return offers


def _project(store: Store, blanks: Mapping[str, Body], shelf: Shelf, rng: Random, opened: int, now: int) -> list[Offer]:
    spec, blueprint = shelf.spec, shelf.blueprint
    ident = named_uuid("project", blueprint.slug)
    public, hidden = new_project(
        blueprint.fields | {"status": spec.status}, blanks["Project"], ident, store.merchant.user_id, iso(opened)
    )
    store.add("projects", ident, public, hidden)
    stopped = None
    if spec.status in ("suspended", "archived"):
        stopped = min(now - HOUR, max(opened + 2 * HOUR, office_hour(rng, now - spec.stopped_days_ago * DAY)))
    offers, plan_ids = [], {}
    at = opened
    for fields, share in shelf.plans:
        at = min(at + 3 * 60_000 + int(rng.random() * 600_000), now)
        plan_id = named_uuid("plan", blueprint.slug, fold(fields["name"]))
        plan = new_plan({"projectId": ident, **fields}, blanks["Plan"], iso(at)) | {"id": plan_id}
        closes = now if stopped is None else stopped
        if plan["status"] == "inactive":  # it was sold until four months ago
            closes = min(closes, max(at + HOUR, office_hour(rng, now - 120 * DAY)))
            plan["updatedAt"] = iso(closes)
        store.add("plans", plan_id, plan, {})
        plan_ids[plan["name"]] = plan_id
        if spec.status != "draft" and share > 0:
            sources = ("instagram",) * 6 + ("google",) * 4 + ("youtube",) * 2 + ("facebook", "indicacao")
            offers.append(
                Offer(
                    public,
                    plan,
                    share * spec.share,
                    at,
                    closes,
                    stopped,
                    spec.status == "archived",
                    blueprint.bumps,
                    sources,
                )
            )
    for number, product in enumerate(blueprint.products, start=1):
        at = min(at + 5 * 60_000 + int(rng.random() * 900_000), now)
        unlocking = {*product.plans, *_added(shelf, product.plans)}
        known = [plan_id for name, plan_id in plan_ids.items() if name in unlocking] or list(plan_ids.values())
        body = {"projectId": ident, **product.fields, "planIds": known}
        product_id = named_uuid("product", blueprint.slug, str(number))
        store.add("products", product_id, new_product(body, blanks["Product"], iso(at)) | {"id": product_id}, {})
    return offers


def _added(shelf: Shelf, names: Sequence[str]) -> list[str]:
    """Plans that the blueprint does not know, where they unlock what the plans of these names do.

    One that is paid once opens what a year opens, every other what a month opens.
    """
    known = {plan.name for plan in shelf.blueprint.plans}
    return [
        fields["name"]
        for fields, _ in shelf.plans
        if fields["name"] not in known and ("Anual" if fields.get("billing_type") == "one_time" else "Mensal") in names
    ]
