"""Fills a sandbox with a scenario: the same scenario, seed and time give the same data on every machine."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from ..contract.document import Document
from ..contract.schema import Schemas
from ..domain.documents import checks_digits
from ..drawing.blueprints import Blueprint, Blueprints
from ..drawing.catalogue import load_catalogue
from ..drawing.draw import stream
from ..drawing.people import People, seeded_faker
from ..drawing.purchases import Offer
from ..drawing.rhythm import Rhythm, office_hour
from ..engine.sandbox import Sandbox
from ..engine.step import SandboxSettings
from ..kernel.clock import DAY, HOUR, iso
from ..kernel.ids import named_uuid
from ..scenarios.files import Files, Node
from ..scenarios.requests import RequestSchemas, check_specs, expand
from ..scenarios.scenario import ProjectSpec, Scenario, parse_scenario, read_scenario
from ..store import memory
from ..store.memory import Store
from .buyers import Buyers
from .keys import plan_keys
from .merchant import Merchant, plan_webhooks
from .personas import plan_persona
from .records import Records
from .sales import Sales
from .script import Script
from .shop import Shop

MERCHANT_ID, USER_ID = named_uuid("merchant", "home"), named_uuid("user", "home")
# The pools of names come from one Faker for all sandboxes: a seed decides who is drawn, not who exists.
POOL_SEED = 20_260_101
# A sandbox is kept as it was filled, so that the next one like it is a copy: of so many records each and in all.
MOST_KEPT_EACH, MOST_KEPT, MOST_COPIES = 100_000, 200_000, 8
SHARED_FOR = HOUR  # while the clock runs, a sandbox filled so long ago still serves
LEAD_DAYS = 40  # between the merchant's beginning and the first month of sales
SHARES = (30, 20, 14, 10, 8, 6, 5, 4)  # of sales, of drawn projects; the last one repeats
#: Scenario and its text, seed, secret and base URL: what decides the data of a sandbox, but for its now.
Key = tuple[str, str, int, bytes, str]


class Seeding:
    """Fills sandboxes. What all of them share is read once, when the first one is filled."""

    def __init__(self, fixtures: Path, document: Document, schemas: Schemas) -> None:
        """`document` is the contract as served, `schemas` its schemas, by which the records of a file are checked."""
        self.fixtures = fixtures
        self._files, self._requests = Files(fixtures), RequestSchemas(schemas)
        self._scopes = [scope["name"] for scope in document.scopes if scope["assignable"]]
        self._drawn: tuple[People, Blueprints] | None = None
        self._kept: dict[Key, Sandbox] = {}

    def fill(self, sandbox: Sandbox, secret: bytes) -> None:
        """Fill an empty sandbox with its scenario, up to its clock's now. Raises ScenarioError."""
        if self.copy(sandbox, secret):
            return
        key = self._key(sandbox, secret)
        checks_digits.set(sandbox.settings.check_digits)
        with _without_collector():
            self._fill(parse_scenario(self._files, sandbox.scenario, key[1]), sandbox, secret)
        self._keep(key, sandbox)

    def copy(self, sandbox: Sandbox, secret: bytes) -> bool:
        """Fill an empty sandbox as another one was, if such a one is kept. Raises ScenarioError."""
        kept = self._kept.get(self._key(sandbox, secret))
        if kept is None or not 0 <= sandbox.clock.now - kept.clock.now <= (0 if sandbox.clock.frozen else SHARED_FOR):
            return False
        twin = kept.fork(sandbox.name)
        sandbox.timers, sandbox.stores, sandbox.home, sandbox.events = twin.timers, twin.stores, twin.home, twin.events
        sandbox.sample, sandbox.personas = twin.sample, twin.personas
        sandbox.credentials = dict(kept.credentials)
        return True

    def _key(self, sandbox: Sandbox, secret: bytes) -> Key:
        text = read_scenario(self._files.folder, sandbox.scenario)
        return sandbox.scenario, text, sandbox.seed, secret, sandbox.rules.base_url

    def _keep(self, key: Key, sandbox: Sandbox) -> None:
        """Have a sandbox be copied from now on; those that were kept first make room."""
        self._kept.pop(key, None)
        if _records(sandbox) > MOST_KEPT_EACH:
            return
        self._kept[key] = sandbox.fork("pristine")
        while len(self._kept) > MOST_COPIES or sum(map(_records, self._kept.values())) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def _fill(self, scenario: Scenario, sandbox: Sandbox, secret: bytes) -> None:
        people, blueprints = self._pools()
        check_specs(scenario, self._requests)
        seed, now = sandbox.seed, sandbox.clock.now
        start = now - round(scenario.months * 365 / 12) * DAY
        begun = office_hour(stream(seed, "merchant"), start - LEAD_DAYS * DAY)
        sandbox.home = MERCHANT_ID
        owner = memory.Merchant(MERCHANT_ID, USER_ID, *scenario.merchant, iso(begun))
        store = sandbox.stores[MERCHANT_ID] = Store(owner, sandbox.rules.layout)
        script = Script(sandbox, store, begun, now)
        with closing(script), sandbox.seeding_past(begun), store.in_bulk(), _silent(sandbox) as raise_events:
            merchant = Merchant(script, stream(seed, "projects"))
            merchant.plan_projects(_projects(scenario, blueprints, seed), begun + 2 * DAY)
            listening = plan_webhooks(script, stream(seed, "webhooks"), scenario.webhooks, secret, seed, begun)
            if listening is not None:
                script.add(listening, raise_events)
            sandbox.credentials = plan_keys(script, scenario.keys, self._scopes, secret, seed, stream(seed, "keys"))
            rhythm = Rhythm(start, now)
            buyers = Buyers(script, people, seed, rhythm, merchant.in_use)
            shop = Shop(script, stream(seed, "lives"))
            sales = Sales(script, shop, buyers, merchant.offers, rhythm, stream(seed, "arrivals"))
            records = Records(sales, self._requests, begun, scenario.name)
            self._plan_named(sandbox, scenario, sales, records)
            _plan_everybody_else(scenario, sales)
            script.run()
            records.check()
        sandbox.sample = _sample(store, merchant.offers)

    def _plan_named(self, sandbox: Sandbox, scenario: Scenario, sales: Sales, records: Records) -> None:
        """What a scenario names is planned before anything is drawn: catalogue, personas, customers and orders."""
        explicit = list(enumerate(scenario.records))
        for number, spec in explicit:
            if spec.table in ("projects", "plans", "products"):
                records.plan(number, spec)
        for persona in scenario.personas:
            body = expand(persona.fields)
            sent = {name: value for name, value in body.items() if name != "id"}
            self._requests.check("CustomerCreate", sent, persona.node["customer"].fail)
            sandbox.personas[persona.name] = plan_persona(sales, persona, body, sandbox.seed)
        for number, spec in explicit:
            if spec.table in ("customers", "orders"):
                records.plan(number, spec)

    def _pools(self) -> tuple[People, Blueprints]:
        if self._drawn is None:
            catalogue, faker = load_catalogue(self._files), seeded_faker(POOL_SEED)
            self._drawn = People(catalogue, faker), Blueprints(catalogue, faker)
        return self._drawn


def _records(sandbox: Sandbox) -> int:
    return sum(sandbox.counts().values())


def _projects(scenario: Scenario, blueprints: Blueprints, seed: int) -> Iterable[tuple[ProjectSpec, Blueprint]]:
    """The projects that a scenario names, or as many drawn ones as it says. Raises ScenarioError."""
    if isinstance(scenario.projects, int):
        drawn = blueprints.draw(stream(seed, "projects", "drawn"), scenario.projects)
        for number, blueprint in enumerate(drawn):
            share, slug = SHARES[min(number, len(SHARES) - 1)], blueprint.slug
            yield ProjectSpec(slug, "active", share, (), 0, Node(None, "", slug)), blueprint
    else:
        for spec in scenario.projects:
            found = blueprints.find(stream(seed, "projects", spec.slug), spec.slug)
            if found is None:
                raise spec.node["slug"].fail(f"the catalogue has no project {spec.slug!r}")
            yield spec, found


def _plan_everybody_else(scenario: Scenario, sales: Sales) -> None:
    if not sales.selling and (scenario.owing or scenario.orders > sales.planned):
        asked = scenario.root["everybody" if scenario.owing else "orders"]
        raise asked.fail("nothing can be bought: no active project of `projects` has a plan")
    people = max(0, scenario.customers - sales.buyers.named)
    if scenario.owing:
        sales.owe(people)
    else:
        sales.plan(people, scenario.orders, scenario.pending)


@contextmanager
def _silent(sandbox: Sandbox) -> Iterator[Callable[[], None]]:
    """Raise no events until the block calls what it is given: nobody listens before the first webhook.

    In the past people pay by themselves and deliveries follow the standard schedule, whatever the settings say.
    """
    rules, settings = sandbox.rules, sandbox.settings
    lifecycles = {
        name: replace(lifecycle, moves=tuple(move._replace(events=()) for move in lifecycle.moves))
        for name, lifecycle in rules.lifecycles.items()
    }
    changes = {name: dict.fromkeys(known, ()) for name, known in rules.changes.items()}

    def raise_events() -> None:
        sandbox.rules = rules

    sandbox.rules, sandbox.settings = replace(rules, lifecycles=lifecycles, changes=changes), SandboxSettings()
    try:
        yield raise_events
    finally:
        sandbox.rules, sandbox.settings = rules, settings


@contextmanager
def _without_collector() -> Iterator[None]:
    """Without the garbage collector, which would walk the growing sandbox again and again and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # What was created is there to stay: it joins the old objects without being looked through first.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def _sample(store: Store, offers: list[Offer]) -> dict[str, str]:
    """Ids to try operations with: what sells best, and the newest PIX order that waits for payment."""
    sample: dict[str, str] = {}
    open_offers = [o for o in offers if o.project["status"] == "active" and o.plan["status"] == "active"]
    if open_offers:
        best = max(open_offers, key=lambda offer: offer.share)
        sample |= {"projectId": best.project["id"], "planId": best.plan["id"]}
    if len(store.customers):
        sample["customerId"] = store.customers.rows[store.customers.order[0]].id
    for key in reversed(store.orders.bucket("status", "pending")):
        row = store.orders.parse(store.orders.rows[key])
        if row.public["paymentMethod"] == "pix" and not row.hidden["renewal"]:
            sample |= {"orderId": row.id, "customerId": row.hidden["customerId"]}
            break
    return sample
