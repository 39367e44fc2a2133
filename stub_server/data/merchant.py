"""What the merchant does from the first day to now: opens projects with plans and products, keys
and webhooks.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from ..core.clock import DAY, HOUR, MINUTE, SECOND, iso
from ..core.ids import derived_text, named_uuid
from ..core.problem import Refusal
from ..core.record import Body
from ..core.signing import new_key
from ..domain import api_keys
from ..domain.lifecycle import known_ids, path
from ..domain.projects import changed_plan, new_plan, new_product, new_project
from ..domain.webhooks import changed_webhook, new_webhook
from ..engine import resources
from ..engine.deliveries import CALLING_OFF
from ..engine.draft import Draft
from ..engine.tables.specs import UniqueViolation
from .catalogue import Membership, offered
from .keys import MAIN_ID, pair_of
from .provider import new_faker, stream
from .purchases import Offer
from .rhythm import office_hour
from .scenario import Node, Scenario, check_request
from .script import Action, Script
from .tables import plain_ascii, table

SHARES = (30, 20, 14, 10, 8, 6, 5, 4)  # of sales, of drawn projects; the last one repeats
MAIN_KEY: Body = {
    "name": "Loja principal",
    "description": "Chave do site, com todas as permissões.",
}
NOT_OF_KEYS = ("key", "state", "usage", "days_old", "allowed_projects", "expires_in_days")
NOT_OF_WEBHOOKS = ("key", "behaviour", "state", "days_old", "project")
# of the last drawn projects, where every state is shown
STATES = ("draft", "suspended", "archived")
PRODUCT_STATES = ("active", "draft", "archived")  # of the first project's products, then
PLACES_LEFT = (0, 20)  # of the two plans that sell least


class Merchant:
    """Plans what the merchant does since the first day, `begun` (ms).

    `in_use` are the ids and documents that records have; `projects` and `plans` are by id, and
    `offers` are the plans that the crowd buys. What is for sale is created by the engine's rules at
    its time, that of the catalogue and that which a scenario names alike. A node is the place in
    the file that an error names. Methods raise ScenarioError.
    """

    def __init__(self, script: Script, scenario: Scenario, begun: int) -> None:
        self.script, self.scenario, self.begun, self.now = script, scenario, begun, script.end
        self.seed, self.rules = script.sandbox.origin.seed, script.sandbox.rules
        self.in_use: set[str] = set()
        self.projects: dict[str, Body] = {}
        self.plans: dict[str, Body] = {}
        self.offers: list[Offer] = []

    def claim(self, name: str, node: Node, what: str) -> None:
        """Use an id or document that only one record can have."""
        if name in self.in_use:
            raise node.fail(f"another {what}")
        self.in_use.add(name)

    def checked(self, node: Node, action: Action, *args: Any) -> None:
        """Call an action; what the rules refuse is an error of the file."""
        try:
            action(*args)
        except Refusal as refusal:
            raise node.fail(refusal.message) from None
        except UniqueViolation as clash:
            raise node.fail(str(clash)) from None

    def later(self, at: int, node: Node, change: Action, *args: Any) -> None:
        """Plan a step at an instant."""
        self.script.add(at, self.checked, node, self.script.step, change, *args)

    def add_project(self, node: Node, ident: str, fields: Body, at: int) -> Body:
        """Plan a project."""
        user = self.script.store.merchant.user_id
        public, hidden = new_project(fields, self.rules.defaults["Project"], ident, user, iso(at))
        self.later(at, node, resources.add_project, public, hidden)
        self.projects[ident] = public
        return public

    def add_plan(self, node: Node, ident: str, fields: Body, at: int) -> Body:
        """Plan a plan."""
        public = new_plan(fields, self.rules.defaults["Plan"], iso(at)) | {"id": ident}
        self.later(at, node, resources.add, "plans", public)
        self.plans[ident] = public
        return public

    def add_product(self, node: Node, ident: str, fields: Body, at: int) -> None:
        """Plan a product."""
        public = new_product(fields, self.rules.defaults["Product"], iso(at)) | {"id": ident}
        self.later(at, node, resources.add, "products", public)

    # -- what is sold

    def plan_projects(self) -> None:
        """Plan the projects with all that will be for sale in them, one after the other."""
        rng = stream(self.seed, "projects")
        for number, (spec, membership) in enumerate(self._memberships()):
            opened = office_hour(rng, self.begun + (3 + 2 * number) * DAY)
            if spec.value["status"] == "draft":
                opened = office_hour(rng, self.now - 9 * DAY)
            self._plan_project(rng, spec, membership, min(opened, self.now - HOUR), number)
        if self.scenario.every_state:
            self.script.plan(self.now, self._limit_places)

    def _memberships(self) -> Iterator[tuple[Node, Membership]]:
        """As many drawn projects as the scenario says, and those that it names."""
        faker = new_faker(self.seed, "projects", "drawn")
        drawn = self.scenario.drawn
        states = STATES if self.scenario.every_state and drawn > len(STATES) + 1 else ()
        for number, slug in enumerate(faker.random_sample([*offered()], drawn)):
            first = number == 0 or None  # some project has a trial, whatever the seed
            share = SHARES[min(number, len(SHARES) - 1)]
            membership = faker.membership(slug, has_trial=first)
            status = states[number - drawn] if number >= drawn - len(states) else "active"
            yield Node({"status": status, "share": share}, "", steps=(slug,)), membership
        for spec in self.scenario.root.each("projects"):
            slug = spec.value["slug"]
            if slug not in offered():
                raise spec["slug"].fail(f"the catalogue has no project {slug!r}")
            yield spec, new_faker(self.seed, "projects", slug).membership(slug)

    def _plan_project(
        self, rng: Random, spec: Node, membership: Membership, opened: int, place: int
    ) -> None:
        status, ident = spec.value["status"], named_uuid("project", membership.slug)
        first = {"status": "active"}
        if status == "draft":
            first = {"status": "draft", "visibility": "private"}
        project = self.add_project(spec, ident, membership.project | first, opened)
        self.claim(ident, spec, "project has this slug")
        stopped = None
        if status in ("suspended", "archived"):
            wanted = self.now - spec.get("stopped_days_ago", 60) * DAY
            stopped = min(self.now - HOUR, max(opened + 2 * HOUR, wanted))
            self.script.plan(stopped, move_project, ident, status)
        at, plans = opened, list[str]()
        shows = self.scenario.every_state and place < self.scenario.drawn
        for fields, share in self._plans(ident, spec, membership, retires=shows and place == 1):
            at = min(at + 3 * MINUTE + int(rng.random() * 10 * MINUTE), self.now)
            plan, closes = self._plan_plan(
                rng, spec, membership.slug, fields, at=at, stopped=stopped
            )
            plans.append(plan["id"])
            if status != "draft" and share > 0 and plan["max_subscribers"] is None:
                self.offers.append(
                    Offer(project, plan, share, at, closes, stopped, membership.bumps)
                )
        for number, fields in enumerate(membership.products, start=1):
            at = min(at + 5 * MINUTE + int(rng.random() * 15 * MINUTE), self.now)
            body = {"projectId": ident, **fields, "planIds": plans}
            if self.scenario.every_state and place == 0:
                body["status"] = PRODUCT_STATES[(number - 1) % len(PRODUCT_STATES)]
            self.add_product(spec, named_uuid("product", membership.slug, str(number)), body, at)

    def _plans(
        self, project_id: str, spec: Node, membership: Membership, *, retires: bool
    ) -> Iterator[tuple[Body, float]]:
        """The plans that the scenario gives a project, or else the drawn ones, with their shares of
        all sales.

        With `retires` the last drawn one is not sold any more.
        """
        of_project = spec.get("share", 1)
        given = [*spec.each("plans")]
        for node in given:
            fields = {"projectId": project_id, **node.without("share")}
            check_request(self.rules.schemas, "PlanCreate", fields, node)
            yield fields, node.get("share", 1) * of_project
        if not given:
            for plan in membership.plans:
                fields = {"projectId": project_id, **plan}
                if retires and plan is membership.plans[-1]:
                    fields["status"] = "inactive"
                yield fields, table("habits")["sales"][plan["name"]] * of_project

    def _plan_plan(
        self, rng: Random, spec: Node, slug: str, fields: Body, *, at: int, stopped: int | None
    ) -> tuple[Body, int]:
        """Plan a plan; returns it with the instant until which it is sold (ms)."""
        ident, closes = named_uuid("plan", slug, plain_ascii(fields["name"])), stopped or self.now
        plan = self.add_plan(spec, ident, fields | {"status": "active"}, at)
        self.claim(
            ident, spec, f"plan of this project has the name {plan['name']!r}, accents apart"
        )
        if fields.get("status") == "inactive":  # it was sold until four months ago
            closes = min(closes, max(at + HOUR, office_hour(rng, self.now - 120 * DAY)))
            self.script.plan(closes, withdraw_plan, ident)
        return plan, closes

    def _limit_places(self, draft: Draft) -> None:
        """Of the memberships on sale those that sell least have few places: the first one none, the
        next one some.
        """
        left, store = list(PLACES_LEFT), draft.store
        for offer in sorted(self.offers, key=lambda offer: offer.share):
            if offer.stopped is not None or offer.closes < self.now or not offer.plan["interval"]:
                continue
            ident = offer.plan["id"]
            members = store.subscriptions.members("plan_subscribers", ident)
            in_use = len({*members, *store.orders.members("plan_waiting", ident)})
            row = draft.open("plans", ident)
            if in_use and left and row is not None:
                limited = row.public | {
                    "max_subscribers": in_use + left.pop(0),
                    "updatedAt": iso(draft.now),
                }
                resources.change(draft, row, limited)

    # -- webhooks and keys

    def _project_id(self, node: Node, slug: str) -> str:
        if all(spec.value["slug"] != slug for spec in self.scenario.root.each("projects")):
            raise node.fail(f"there is no project {slug!r}")
        return named_uuid("project", slug)

    def _opened(self, rng: Random, days_old: int, soonest: int) -> int:
        """An office hour about so many days ago, at least `soonest` ms after the
        first day began.
        """
        return max(
            self.begun + soonest,
            min(office_hour(rng, self.now - days_old * DAY), self.now - 5 * MINUTE),
        )

    def plan_webhooks(self) -> None:
        """Plan the webhooks. Events are raised from the first one on.

        Their receivers, healthy, flaky or gone, answer through the engine, as they do in a sandbox
        that is used.
        """
        rng, times = stream(self.seed, "webhooks"), list[int]()
        for node in self.scenario.root.each("webhooks"):
            fields = node.without(*NOT_OF_WEBHOOKS)
            check_request(self.rules.schemas, "WebhookCreate", fields, node)
            created = self._opened(rng, node.get("days_old", 30), HOUR)
            self.script.plan(created, self._create_webhook, node, fields, created)
            if node.get("state", "active") == "inactive":
                ident = named_uuid("webhook", node.value["key"])
                self.script.plan(self.now - HOUR // 2, _silence, ident)
            times.append(created)
        if times:
            origin = self.script.sandbox.origin
            self.script.add(min(times), setattr, origin, "raises_events", True)

    def _create_webhook(self, draft: Draft, node: Node, fields: Body, created: int) -> None:
        name, slug = node.value["key"], node.get("project", None)
        fields["projectId"] = None if slug is None else self._project_id(node["project"], slug)
        key = new_key(derived_text(self.rules.secret, 32, str(self.seed), "webhook", name).encode())
        ident, defaults = named_uuid("webhook", name), self.rules.defaults["Webhook"]
        public, hidden = new_webhook(fields, defaults, ident, key, iso(created))
        gone = created + (self.now - created) * 2 // 5
        receiver = {"behaviour": node.value["behaviour"], "gone": gone, "until": self.now}
        draft.create("webhooks", public, hidden | {"receiver": receiver})

    def plan_keys(self) -> None:
        """Plan the main key, which has all scopes that a key can have, and the scenario's."""
        known = self.rules.document.scopes
        scopes = [scope["name"] for scope in known if scope["assignable"]]
        rng = stream(self.seed, "keys")
        first = self.begun + 10 * MINUTE + int(rng.random() * HOUR)
        self.script.plan(first, self._create_key, MAIN_ID, MAIN_KEY | {"scopes": scopes})
        requests = 0
        for node in self.scenario.root.each("keys"):
            self._plan_key(rng, node)
            requests += node.get("usage", 0)
        latest = self.now - 20 * SECOND - int(rng.random() * 4 * MINUTE)
        self.script.add(self.now, self._use_main_key, requests, latest)

    def _plan_key(self, rng: Random, node: Node) -> None:
        """Plan a key, and how often it was used and when last."""
        now, ident, state = self.now, named_uuid("api_key", node.value["key"]), node.value["state"]
        fields = node.without(*NOT_OF_KEYS)
        check_request(self.rules.schemas, "ApiKeyCreate", fields, node)
        slugs = node.get("allowed_projects", [])
        fields["allowed_projects"] = [
            self._project_id(node["allowed_projects"], slug) for slug in slugs
        ]
        created = self._opened(rng, node.get("days_old", 200), 2 * HOUR)
        last, days = now - int(rng.random() * 5 * HOUR), node.get("expires_in_days", None)
        if state == "expired":
            ended = created + (now - created) // 2
            fields["expires_at"] = iso(ended)
            last = ended - int(rng.random() * 20 * HOUR)
        elif days is not None:
            # to the end of the day in Brasília, three hours into the next one of UTC
            fields["expires_at"] = iso((now // DAY + days) * DAY + 3 * HOUR - 1)
        self.script.plan(created, self._create_key, ident, fields)
        if state == "inactive":
            last = created + (now - created) // 3
            self.script.plan(last + HOUR, _switch_off, ident)
        usage = node.get("usage", 0)
        if usage:
            used = (usage, iso(max(created, last)))
            self.script.add(now, self.script.store.set_usage, ident, used)

    def _create_key(self, draft: Draft, ident: str, fields: Body) -> None:
        known, asked = draft.store.projects.keys, fields.get("allowed_projects", [])
        projects = known_ids("allowed_projects", "project", asked, known.__contains__)
        halves = pair_of(self.rules.secret, self.seed, ident)
        defaults = self.rules.defaults["ApiKey"]
        public, hidden = api_keys.new_key(
            fields, defaults, ident, halves, projects=projects, now=draft.now
        )
        resources.add_key(draft, public, hidden | {"user_id": draft.store.merchant.user_id})

    def _use_main_key(self, requests: int, latest: int) -> None:
        """The main key was used by every order, twice, and by so many `requests` of others."""
        store = self.script.store
        if len(store.orders):
            store.set_usage(MAIN_ID, (2 * len(store.orders) + requests, iso(latest)))


def _silence(draft: Draft, ident: str) -> None:
    """A webhook is switched off, which calls off its open deliveries."""
    row = draft.get("webhooks", ident)
    draft.update(row, changed_webhook(row.public, {"is_active": False}, iso(draft.now)))
    draft.at(draft.now, CALLING_OFF, ident)


def _switch_off(draft: Draft, ident: str) -> None:
    row = draft.get("api_keys", ident)
    resources.change_key(
        draft, row, *api_keys.changed_key(row, {"is_active": False}, None, draft.now)
    )


def move_project(draft: Draft, ident: str, to: str) -> None:
    """Move a project to a status, by the shortest way that the contract knows."""
    row, moves = draft.get("projects", ident), draft.lifecycle("Project")
    for status in path(moves, row.status, to)[1:]:
        moved = moves.find(row.status, status)
        assert moved is not None  # a step of the way
        row = resources.move_project(draft, row, moved)


def withdraw_plan(draft: Draft, ident: str) -> None:
    """A plan is not sold any more; who has it keeps it."""
    row = draft.get("plans", ident)
    running = draft.store.running("planId", ident)
    changed = changed_plan(row.public, {"status": "inactive"}, running, iso(draft.now))
    resources.change(draft, row, changed)
