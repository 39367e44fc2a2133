"""The merchant's projects with their plans and products, old enough to have a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ..domain.lifecycle import path
from ..domain.plans import changed_plan, new_plan
from ..domain.products import new_product
from ..domain.projects import new_project
from ..drawing.market import Offer
from ..drawing.niches import ProjectBlueprint
from ..drawing.plans import PERIODS
from ..drawing.pools import plain_ascii
from ..drawing.rhythm import office_hour, office_hour_before
from ..engine import resources
from ..engine.billing import lifecycle
from ..kernel.clock import DAY, HOUR, MINUTE, iso
from ..kernel.ids import named_uuid
from ..kernel.record import Body
from ..scenarios.files import Node
from ..scenarios.scenario import ProjectSpec
from .script import Script

SOURCES = ("instagram",) * 6 + ("google",) * 4 + ("youtube",) * 2 + ("facebook", "indicacao")  # where buyers come from
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


class Merchant:
    """Opens the projects, and stops some of them."""

    def __init__(self, script: Script, rng: Random, begun: int) -> None:
        """`begun` is when the merchant began with the projects, in ms."""
        self.script, self.store, self.rng, self.begun = script, script.store, rng, begun
        self.offers: list[Offer] = []
        self.taken: set[str] = set()

    def plan_projects(self, shelves: Sequence[Shelf]) -> None:
        """Plan the projects, one after the other, with all that will be for sale in them."""
        for number, shelf in enumerate(shelves):
            opened = office_hour(self.rng, self.begun + (1 + 2 * number) * DAY)
            if shelf.spec.status == "draft":
                opened = office_hour(self.rng, self.script.end - 9 * DAY)
            self._project(shelf, min(opened, self.script.end - HOUR))

    def _project(self, shelf: Shelf, opened: int) -> None:
        spec, blueprint, rng, now = shelf.spec, shelf.blueprint, self.rng, self.script.end
        ident = named_uuid("project", blueprint.slug)
        self._claim(blueprint.fields["name"].casefold(), spec.node, "the project", blueprint.fields["name"])
        self.taken.add(ident)
        is_draft = spec.status == "draft"
        first = {"status": "draft", "visibility": "private"} if is_draft else {"status": "active"}
        project, hidden = new_project(
            blueprint.fields | first,
            self.script.sandbox.rules.defaults["Project"],
            ident,
            self.store.merchant.user_id,
            iso(opened),
        )
        self.script.add(opened, self.open_project, project, hidden)
        stopped = None
        if spec.status in ("suspended", "archived"):
            wanted = office_hour_before(rng, now - (spec.stopped_days_ago - 1) * DAY)
            stopped = min(now - HOUR, max(opened + 2 * HOUR, wanted))
            self.script.add(stopped, self.move_project, ident, spec.status)
        at, plan_ids = opened, {}
        for fields, share in shelf.plans:
            at = min(at + 3 * MINUTE + int(rng.random() * 10 * MINUTE), now)
            plan_id = named_uuid("plan", blueprint.slug, plain_ascii(fields["name"]))
            sold = {"projectId": ident, **fields, "status": "active"}
            plan = new_plan(sold, self.script.sandbox.rules.defaults["Plan"], iso(at)) | {"id": plan_id}
            self.script.add(at, self.add_plan, plan)
            closes = now if stopped is None else stopped
            if fields.get("status") == "inactive":  # it was sold until four months ago
                closes = min(closes, max(at + HOUR, office_hour(rng, now - 120 * DAY)))
                self.script.add(closes, self.withdraw, plan_id)
            plan_ids[plan["name"]] = plan_id
            for name in (plan_id, f"{ident} {plan['name'].casefold()}"):  # the id forgets accents, the name does not
                self._claim(name, spec.node, "the plan", plan["name"])
            if spec.status != "draft" and share > 0:
                self.offers.append(
                    Offer(project, plan, share * spec.share, at, closes, stopped, blueprint.bumps, SOURCES)
                )
        for number, product in enumerate(blueprint.products, start=1):
            at = min(at + 5 * MINUTE + int(rng.random() * 15 * MINUTE), now)
            unlocking = {*product.plans, *_added(shelf, product.plans)}
            known = [plan_id for name, plan_id in plan_ids.items() if name in unlocking] or list(plan_ids.values())
            body = {"projectId": ident, **product.fields, "planIds": known}
            made = new_product(body, self.script.sandbox.rules.defaults["Product"], iso(at))
            self.script.add(at, self.add_product, made | {"id": named_uuid("product", blueprint.slug, str(number))})

    def _claim(self, name: str, node: Node, what: str, shown: str) -> None:
        """What two records cannot both have. Raises ScenarioError."""
        if name in self.taken:
            raise node.fail(f"{what} {shown!r} stands twice: names that differ in capitals or accents alone are one")
        self.taken.add(name)

    def open_project(self, public: Body, hidden: Body) -> None:
        """A project begins."""
        draft = self.script.draft()
        resources.add_project(draft, public, hidden)
        self.script.record(draft)

    def move_project(self, ident: str, to: str) -> None:
        """A project is stopped, by the shortest way that the contract knows."""
        draft = self.script.draft()
        row, moves = draft.open(self.store.projects, ident), lifecycle(draft, "Project")
        assert row is not None
        for status in path(moves, row.public["status"], to)[1:]:
            moved = moves.find(row.public["status"], status)
            assert moved is not None  # a step of the way
            resources.move_project(draft, row, moved)
            row = draft.open(self.store.projects, ident)
            assert row is not None
        if not draft.is_empty:
            self.script.record(draft)

    def add_plan(self, public: Body) -> None:
        """A plan goes on sale."""
        draft = self.script.draft()
        resources.add_plan(draft, public)
        self.script.record(draft)

    def withdraw(self, ident: str) -> None:
        """A plan is not sold any more; who has it keeps it."""
        draft = self.script.draft()
        row = draft.open(self.store.plans, ident)
        assert row is not None
        running = self.store.running("planId", ident)
        changed = changed_plan(row.public, {"status": "inactive"}, running, iso(draft.now))
        resources.change(draft, self.store.plans, row, changed, project=row.public["projectId"])
        self.script.record(draft)

    def add_product(self, public: Body) -> None:
        """A product goes into the members' area."""
        draft = self.script.draft()
        resources.add_product(draft, public)
        self.script.record(draft)


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
