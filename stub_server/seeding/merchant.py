"""What the merchant sets up: projects with plans and products, old enough to have a history, keys and webhooks."""

from collections.abc import Iterator, Sequence
from random import Random

from ..contract.schema import Schemas
from ..domain import api_keys
from ..domain.lifecycle import known_ids, path
from ..domain.projects import changed_plan, new_plan, new_product, new_project
from ..domain.webhooks import new_webhook
from ..drawing.blueprints import Blueprint, Blueprints
from ..drawing.catalogue import plain_ascii
from ..drawing.draw import stream
from ..drawing.purchases import Offer
from ..drawing.rhythm import office_hour, office_hour_before
from ..engine import resources
from ..engine.draft import Draft
from ..events.signing import new_key
from ..kernel.clock import DAY, HOUR, MINUTE, SECOND, iso
from ..kernel.ids import derived_text, named_uuid
from ..kernel.record import Body
from ..scenarios.files import Node, check_request
from ..scenarios.scenario import Scenario
from .keys import MAIN_ID, pair_of
from .script import Script

SHARES = (30, 20, 14, 10, 8, 6, 5, 4)  # of sales, of drawn projects; the last one repeats
MAIN_KEY: Body = {"name": "Loja principal", "description": "Chave do site, com todas as permissões."}


class Merchant:
    """Plans what the merchant does from the first day, `begun` (ms), to now. Methods raise ScenarioError.

    `offers` are the plans that the crowd buys, `in_use` the ids and names that projects and plans have.
    """

    def __init__(self, script: Script, scenario: Scenario, schemas: Schemas, secret: bytes, begun: int) -> None:
        self.script, self.scenario, self.schemas, self.secret = script, scenario, schemas, secret
        self.begun, self.now = begun, script.end
        self.seed, self.defaults = script.sandbox.seed, script.sandbox.rules.defaults
        self.offers: list[Offer] = []
        self.in_use: set[str] = set()

    # -- what is sold

    def plan_projects(self, blueprints: Blueprints) -> None:
        """Plan the projects with all that will be for sale in them, one after the other."""
        rng = stream(self.seed, "projects")
        for number, (spec, blueprint) in enumerate(self._projects(blueprints)):
            opened = office_hour(rng, self.begun + (3 + 2 * number) * DAY)
            if spec.value["status"] == "draft":
                opened = office_hour(rng, self.now - 9 * DAY)
            self._plan_project(rng, spec, blueprint, min(opened, self.now - HOUR))

    def _projects(self, blueprints: Blueprints) -> Iterator[tuple[Node, Blueprint]]:
        """As many drawn projects as the scenario says, and those that it names."""
        drawn = blueprints.draw(stream(self.seed, "projects", "drawn"), self.scenario.drawn)
        for number, blueprint in enumerate(drawn):
            share = SHARES[min(number, len(SHARES) - 1)]
            yield Node({"status": "active", "share": share}, "", blueprint.slug), blueprint
        for spec in self.scenario.root.each("projects"):
            slug = spec.value["slug"]
            found = blueprints.find(stream(self.seed, "projects", slug), slug)
            if found is None:
                raise spec["slug"].fail(f"the catalogue has no project {slug!r}")
            yield spec, found

    def _plan_project(self, rng: Random, spec: Node, blueprint: Blueprint, opened: int) -> None:
        now, script, slug, status = self.now, self.script, blueprint.slug, spec.value["status"]
        ident, is_draft = named_uuid("project", slug), status == "draft"
        self._claim(blueprint.fields["name"].casefold(), spec, "the project", blueprint.fields["name"])
        self.in_use.add(ident)
        first = {"status": "draft", "visibility": "private"} if is_draft else {"status": "active"}
        user = script.store.merchant.user_id
        project, hidden = new_project(blueprint.fields | first, self.defaults["Project"], ident, user, iso(opened))
        script.add(opened, script.step, resources.add_project, project, hidden)
        stopped = None
        if status in ("suspended", "archived"):
            wanted = office_hour_before(rng, now - (spec.get("stopped_days_ago", 60) - 1) * DAY)
            stopped = min(now - HOUR, max(opened + 2 * HOUR, wanted))
            script.add(stopped, script.step, move_project, ident, status)
        plans: list[tuple[Body, float]] = []
        for node in spec.each("plans"):
            fields = node.without("share")
            check_request(self.schemas, "PlanCreate", {"projectId": ident} | fields, node)
            plans.append((fields, node.get("share", 1)))
        at, usual = opened, {plan["name"] for plan, _ in blueprint.plans}
        alike: dict[str, str] = {}  # plan id -> the blueprint's plan that unlocks the same products
        for fields, share in plans or blueprint.plans:
            at = min(at + 3 * MINUTE + int(rng.random() * 10 * MINUTE), now)
            plan_id = named_uuid("plan", slug, plain_ascii(fields["name"]))
            plan = new_plan({"projectId": ident, **fields, "status": "active"}, self.defaults["Plan"], iso(at))
            plan["id"] = plan_id
            like = "Anual" if plan["billing_type"] == "one_time" else "Mensal"
            alike[plan_id] = plan["name"] if plan["name"] in usual else like
            script.add(at, script.step, resources.add, "plans", plan)
            closes = now if stopped is None else stopped
            if fields.get("status") == "inactive":  # it was sold until four months ago
                closes = min(closes, max(at + HOUR, office_hour(rng, now - 120 * DAY)))
                script.add(closes, script.step, _withdraw, plan_id)
            for name in (plan_id, f"{ident} {plan['name'].casefold()}"):  # the id forgets accents, the name does not
                self._claim(name, spec, "the plan", plan["name"])
            if not is_draft and share > 0:
                number, sales = len(self.offers), share * spec.get("share", 1)
                self.offers.append(Offer(number, project, plan, sales, at, closes, stopped, blueprint.bumps))
        for number, (fields, names) in enumerate(blueprint.products, start=1):
            at = min(at + 5 * MINUTE + int(rng.random() * 15 * MINUTE), now)
            unlocking = [plan_id for plan_id, name in alike.items() if name in names]
            body = {"projectId": ident, **fields, "planIds": unlocking or [*alike]}
            product = new_product(body, self.defaults["Product"], iso(at))
            product["id"] = named_uuid("product", slug, str(number))
            script.add(at, script.step, resources.add, "products", product)

    def _claim(self, name: str, node: Node, what: str, shown: str) -> None:
        """Use a name or id that only one record can have."""
        if name in self.in_use:
            raise node.fail(f"{what} {shown!r} appears twice; names must differ in more than capitals and accents")
        self.in_use.add(name)

    # -- webhooks and keys

    def _project_id(self, node: Node, slug: str) -> str:
        if all(spec.value["slug"] != slug for spec in self.scenario.root.each("projects")):
            raise node.fail(f"there is no project {slug!r}")
        return named_uuid("project", slug)

    def _opened(self, rng: Random, days_old: int, soonest: int) -> int:
        """An office hour about so many days ago, at least `soonest` ms after the first day began."""
        return max(self.begun + soonest, min(office_hour(rng, self.now - days_old * DAY), self.now - 5 * MINUTE))

    def plan_webhooks(self) -> int | None:
        """Plan the webhooks; returns when the first one is created (ms).

        Their receivers, healthy, flaky or gone, answer through the engine, as they do in a sandbox that is used.
        """
        rng, times = stream(self.seed, "webhooks"), []
        for node in self.scenario.root.each("webhooks"):
            name, project, fields = node.value["key"], None, node.without("key", "behaviour", "days_old", "project")
            if node.get("project", None) is not None:
                project = self._project_id(node["project"], node.value["project"])
            check_request(self.schemas, "WebhookCreate", fields, node)
            created = self._opened(rng, node.get("days_old", 30), HOUR)
            gone = created + (self.now - created) * 2 // 5
            receiver = {"behaviour": node.value["behaviour"], "created": created, "gone": gone, "until": self.now}
            fields["projectId"] = project
            key = new_key(derived_text(self.secret, 32, str(self.seed), "webhook", name).encode())
            ident, defaults = named_uuid("webhook", name), self.defaults["Webhook"]
            public, hidden = new_webhook(fields, defaults, ident, key, iso(created))
            new = (self.script.store.webhooks, ident, public, hidden | {"receiver": receiver})
            self.script.add(created, self.script.step, Draft.create, *new)
            times.append(created)
        return min(times, default=None)

    def plan_keys(self, scopes: Sequence[str]) -> dict[str, str]:
        """Plan the main key, which has all `scopes`, and the scenario's; returns the main key's two halves."""
        rng, now, begun, add = stream(self.seed, "keys"), self.now, self.begun, self.script.add
        main = MAIN_KEY | {"scopes": [*scopes]}
        add(begun + 10 * MINUTE + int(rng.random() * HOUR), self.script.step, self._create_key, MAIN_ID, main)
        used: list[tuple[str, int, int]] = []
        for node in self.scenario.root.each("keys"):
            ident, state = named_uuid("api_key", node.value["key"]), node.value["state"]
            fields = node.without("key", "state", "usage", "days_old", "allowed_projects", "expires_in_days")
            slugs = node.get("allowed_projects", [])
            projects = [self._project_id(node["allowed_projects"], slug) for slug in slugs]
            check_request(self.schemas, "ApiKeyCreate", fields, node)
            fields["allowed_projects"] = projects
            created = self._opened(rng, node.get("days_old", 200), 2 * HOUR)
            last, days = now - int(rng.random() * 5 * HOUR), node.get("expires_in_days", None)
            if state == "expired":
                ended = created + (now - created) // 2
                fields["expires_at"] = iso(ended)
                last = ended - int(rng.random() * 20 * HOUR)
            elif days is not None:  # to the end of the day in Brasília, three hours into the next one of UTC
                fields["expires_at"] = iso((now // DAY + days) * DAY + 3 * HOUR - 1)
            add(created, self.script.step, self._create_key, ident, fields)
            if state == "inactive":
                last = created + (now - created) // 3
                add(last + HOUR, self.script.step, _switch_off, ident)
            if node.get("usage", 0):
                used.append((ident, node.value["usage"], max(created, last)))
        add(now, self._use_keys, used, now - 20 * SECOND - int(rng.random() * 4 * MINUTE))
        public_key, private_key = pair_of(self.secret, self.seed, MAIN_ID)
        return {"public_key": public_key, "private_key": private_key}

    def _create_key(self, draft: Draft, ident: str, fields: Body) -> None:
        known, asked = draft.store.projects.keys, fields.get("allowed_projects", [])
        projects = known_ids("allowed_projects", "project", asked, known.__contains__)
        halves = pair_of(self.secret, self.seed, ident)
        public, hidden = api_keys.new_key(fields, self.defaults["ApiKey"], ident, *halves, projects, draft.now)
        resources.add_key(draft, public, hidden | {"user_id": draft.store.merchant.user_id})

    def _use_keys(self, used: Sequence[tuple[str, int, int]], latest: int) -> None:
        """How often each key was used, and when last: the main one by every order, twice."""
        store = self.script.store
        for ident, count, last in used:
            store.set_usage(ident, (count, iso(last)))
        if len(store.orders):
            requests = sum(count for _, count, _ in used)
            store.set_usage(MAIN_ID, (2 * len(store.orders) + requests, iso(latest)))


def _switch_off(draft: Draft, ident: str) -> None:
    row = draft.open(draft.store.api_keys, ident)
    assert row is not None
    resources.change_key(draft, row, *api_keys.changed_key(row, {"is_active": False}, None, draft.now))


def move_project(draft: Draft, ident: str, to: str) -> None:
    """Move a project to a status, by the shortest way that the contract knows."""
    row, moves = draft.open(draft.store.projects, ident), draft.lifecycle("Project")
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
