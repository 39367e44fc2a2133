"""What the merchant sets up: projects with their plans and products, old enough to have a history, and webhooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from ..domain.lifecycle import path
from ..domain.projects import changed_plan, new_plan, new_product, new_project
from ..domain.webhooks import new_webhook
from ..drawing.blueprints import Blueprint
from ..drawing.catalogue import plain_ascii
from ..drawing.purchases import Offer
from ..drawing.rhythm import office_hour, office_hour_before
from ..engine import resources
from ..engine.billing import lifecycle
from ..engine.draft import Draft
from ..events.signing import new_key
from ..kernel.clock import DAY, HOUR, MINUTE, iso
from ..kernel.ids import derived_text, named_uuid
from ..scenarios.files import Node
from ..scenarios.scenario import HookSpec, ProjectSpec
from .script import Script

SOURCES = ("instagram",) * 6 + ("google",) * 4 + ("youtube",) * 2 + ("facebook", "indicacao")  # where buyers come from


class Merchant:
    """Opens the projects, and stops some of them. `in_use` are the ids and names that a project or plan has."""

    def __init__(self, script: Script, rng: Random) -> None:
        self.script, self.rng, self.defaults = script, rng, script.sandbox.rules.defaults
        self.offers: list[Offer] = []
        self.in_use: set[str] = set()

    def plan_projects(self, projects: Iterable[tuple[ProjectSpec, Blueprint]], begun: int) -> None:
        """Plan the projects with all that will be for sale in them, one after the other from `begun` (ms) on."""
        for number, (spec, blueprint) in enumerate(projects):
            opened = office_hour(self.rng, begun + (1 + 2 * number) * DAY)
            if spec.status == "draft":
                opened = office_hour(self.rng, self.script.end - 9 * DAY)
            self._project(spec, blueprint, min(opened, self.script.end - HOUR))

    def _project(self, spec: ProjectSpec, blueprint: Blueprint, opened: int) -> None:
        rng, now, script = self.rng, self.script.end, self.script
        ident = named_uuid("project", blueprint.slug)
        self._claim(blueprint.fields["name"].casefold(), spec.node, "the project", blueprint.fields["name"])
        self.in_use.add(ident)
        is_draft = spec.status == "draft"
        first = {"status": "draft", "visibility": "private"} if is_draft else {"status": "active"}
        user = script.store.merchant.user_id
        project, hidden = new_project(blueprint.fields | first, self.defaults["Project"], ident, user, iso(opened))
        script.add(opened, script.step, resources.add_project, project, hidden)
        stopped = None
        if spec.status in ("suspended", "archived"):
            wanted = office_hour_before(rng, now - (spec.stopped_days_ago - 1) * DAY)
            stopped = min(now - HOUR, max(opened + 2 * HOUR, wanted))
            script.add(stopped, script.step, move_project, ident, spec.status)
        at, plan_ids = opened, {}
        plans = spec.plans or blueprint.plans
        for fields, share in plans:
            at = min(at + 3 * MINUTE + int(rng.random() * 10 * MINUTE), now)
            plan_id = named_uuid("plan", blueprint.slug, plain_ascii(fields["name"]))
            body = {"projectId": ident, **fields, "status": "active"}
            plan = new_plan(body, self.defaults["Plan"], iso(at)) | {"id": plan_id}
            script.add(at, script.step, resources.add_plan, plan)
            closes = now if stopped is None else stopped
            if fields.get("status") == "inactive":  # it was sold until four months ago
                closes = min(closes, max(at + HOUR, office_hour(rng, now - 120 * DAY)))
                script.add(closes, script.step, _withdraw, plan_id)
            plan_ids[plan["name"]] = plan_id
            for name in (plan_id, f"{ident} {plan['name'].casefold()}"):  # the id forgets accents, the name does not
                self._claim(name, spec.node, "the plan", plan["name"])
            if not is_draft and share > 0:
                offer = Offer(project, plan, share * spec.share, at, closes, stopped, blueprint.bumps, SOURCES)
                self.offers.append(offer)
        usual = {plan["name"] for plan, _ in blueprint.plans}
        for number, (fields, names) in enumerate(blueprint.products, start=1):
            at = min(at + 5 * MINUTE + int(rng.random() * 15 * MINUTE), now)
            # A plan that the blueprint lacks unlocks what a year does if it is paid once, else what a month does.
            unlocking = {*names} | {
                plan["name"]
                for plan, _ in plans
                if plan["name"] not in usual
                and ("Anual" if plan.get("billing_type") == "one_time" else "Mensal") in names
            }
            known = [plan_id for name, plan_id in plan_ids.items() if name in unlocking] or list(plan_ids.values())
            product = new_product({"projectId": ident, **fields, "planIds": known}, self.defaults["Product"], iso(at))
            product["id"] = named_uuid("product", blueprint.slug, str(number))
            script.add(at, script.step, resources.add_product, product)

    def _claim(self, name: str, node: Node, what: str, shown: str) -> None:
        """Use a name or id that only one record can have. Raises ScenarioError."""
        if name in self.in_use:
            raise node.fail(f"{what} {shown!r} appears twice; names must differ in more than capitals and accents")
        self.in_use.add(name)


def move_project(draft: Draft, ident: str, to: str) -> None:
    """Move a project to a status, by the shortest way that the contract knows."""
    row, moves = draft.open(draft.store.projects, ident), lifecycle(draft, "Project")
    assert row is not None
    for status in path(moves, row.public["status"], to)[1:]:
        moved = moves.find(row.public["status"], status)
        assert moved is not None  # a step of the way
        resources.move_project(draft, row, moved)
        row = draft.open(draft.store.projects, ident)
        assert row is not None


def _withdraw(draft: Draft, ident: str) -> None:
    """A plan is not sold any more; who has it keeps it."""
    row = draft.open(draft.store.plans, ident)
    assert row is not None
    running = draft.store.running("planId", ident)
    changed = changed_plan(row.public, {"status": "inactive"}, running, iso(draft.now))
    resources.change(draft, draft.store.plans, row, changed, project=row.public["projectId"])


def plan_webhooks(
    script: Script, rng: Random, specs: Sequence[HookSpec], secret: bytes, seed: int, begun: int
) -> int | None:
    """Plan the webhooks; returns when the first one is created (ms).

    Their receivers, healthy, flaky or gone, answer through the engine, as they do in a sandbox that is used.
    """
    now, times = script.end, []
    for spec in specs:
        created = max(begun + HOUR, min(office_hour(rng, now - spec.days_old * DAY), now - 5 * MINUTE))
        gone = created + (now - created) * 2 // 5
        receiver = {"behaviour": spec.behaviour, "created": created, "gone": gone, "until": now}
        fields = spec.fields | {"projectId": named_uuid("project", spec.project) if spec.project else None}
        key = new_key(derived_text(secret, 32, str(seed), "webhook", spec.key).encode())
        defaults = script.sandbox.rules.defaults["Webhook"]
        public, hidden = new_webhook(fields, defaults, named_uuid("webhook", spec.key), key, iso(created))
        script.add(created, script.step, resources.add_webhook, public, hidden | {"receiver": receiver})
        times.append(created)
    return min(times, default=None)
