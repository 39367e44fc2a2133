"""A scenario poured into a sandbox: the same scenario, seed and time give the same world on every machine."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ..contract.document import Document
from ..contract.schema import Schemas
from ..domain.documents import checks_digits
from ..drawing.catalogue import Catalogue, load_catalogue
from ..drawing.market import Offer
from ..drawing.niches import ProjectBlueprint, project_blueprint, project_blueprints, slogans_of
from ..drawing.people import People
from ..drawing.pools import seeded_faker
from ..drawing.rhythm import Rhythm, office_hour
from ..drawing.streams import stream
from ..engine.sandbox import Sandbox
from ..engine.step import SandboxSettings
from ..kernel.clock import DAY, HOUR, Clock, iso
from ..kernel.ids import named_uuid
from ..scenarios.files import Files, Node
from ..scenarios.requests import RequestSchemas, check_specs, expand
from ..scenarios.scenario import ProjectSpec, Scenario, parse_scenario, read_scenario
from ..store import memory
from ..store.memory import Store
from .buyers import Buyers
from .keys import plan_keys
from .personas import plan_persona
from .projects import Merchant, Shelf, drawn_plans
from .records import Records
from .sales import Sales
from .script import Script
from .shop import Shop
from .webhooks import Webhooks

MERCHANT_ID, USER_ID = named_uuid("merchant", "home"), named_uuid("user", "home")
# The pools of names come from one Faker for all worlds: a seed decides who is drawn, not who exists.
POOL_SEED = 20_260_101
# A world is kept as it was made, so that the next one like it is a copy: of so many records each and in all.
MOST_KEPT_EACH, MOST_KEPT, MOST_WORLDS = 100_000, 200_000, 8
SHARED_FOR = HOUR  # while the clock runs, a world made so long ago still serves
LEAD_DAYS = 40  # between the merchant's beginning and the first month of sales


class Seeding:
    """Fills sandboxes. What all worlds share is read once, when the first one is filled."""

    def __init__(self, fixtures: Path, document: Document, schemas: Schemas) -> None:
        """`document` is the contract as served, `schemas` its schemas: what a file says is held against them."""
        self.fixtures = fixtures
        self._files, self._requests = Files(fixtures), RequestSchemas(schemas)
        self._scopes = [scope["name"] for scope in document.scopes if scope["assignable"]]
        self._catalogue: Catalogue | None = None
        self._people: People | None = None
        self._slogans: tuple[str, ...] = ()
        self._pristine: dict[_Wanted, Sandbox] = {}

    def fill(self, sandbox: Sandbox, secret: bytes) -> None:
        """Fill an empty sandbox with its scenario, up to its clock's now. Raises ScenarioError."""
        if self.copy(sandbox, secret):
            return
        wanted = self._wanted(sandbox, secret)
        checks_digits.set(sandbox.settings.check_digits)
        with _undisturbed():
            self._pour(parse_scenario(self._files, sandbox.scenario, wanted.text), sandbox, secret)
        self._keep(wanted, sandbox)

    def copy(self, sandbox: Sandbox, secret: bytes) -> bool:
        """Fill an empty sandbox as another one was, if such a one is kept. Raises ScenarioError."""
        pristine = self._pristine.get(self._wanted(sandbox, secret))
        if pristine is None or not _still_fresh(pristine.clock.now, sandbox.clock):
            return False
        _copy(pristine, sandbox)
        return True

    def _wanted(self, sandbox: Sandbox, secret: bytes) -> _Wanted:
        text = read_scenario(self._files.folder, sandbox.scenario)
        return _Wanted(sandbox.scenario, text, sandbox.seed, secret, sandbox.rules.base_url)

    def _keep(self, wanted: _Wanted, sandbox: Sandbox) -> None:
        """Have a world be copied from now on; those that were kept first make room."""
        self._pristine.pop(wanted, None)
        if _records(sandbox) > MOST_KEPT_EACH:
            return
        self._pristine[wanted] = sandbox.fork("pristine")
        kept = sum(_records(world) for world in self._pristine.values())
        while kept > MOST_KEPT or len(self._pristine) > MOST_WORLDS:
            kept -= _records(self._pristine.pop(next(iter(self._pristine))))

    def _pour(self, scenario: Scenario, sandbox: Sandbox, secret: bytes) -> None:
        people = self._load()
        check_specs(scenario, self._requests)
        seed, now = sandbox.seed, sandbox.clock.now
        start = now - round(scenario.months * 365 / 12) * DAY
        begun = office_hour(stream(seed, "merchant"), start - LEAD_DAYS * DAY)
        store = self._merchant(sandbox, scenario, begun)
        script = Script(sandbox, store, begun, now)
        with closing(script), sandbox.seeding_past(begun), store.in_bulk(), _unheard(sandbox) as heard:
            merchant = Merchant(script, stream(seed, "projects"), begun + 2 * DAY)
            merchant.plan_projects(self._shelves(scenario, seed))
            listening = Webhooks(script, stream(seed, "webhooks")).plan(scenario.webhooks, secret, seed, begun)
            if listening is not None:
                script.add(listening, heard)
            sandbox.credentials = plan_keys(script, scenario.keys, self._scopes, secret, seed, stream(seed, "keys"))
            taken = set(merchant.taken)
            rhythm = Rhythm(start, now)
            buyers = Buyers(script, people, seed, rhythm, taken)
            shop = Shop(script, stream(seed, "lives"))
            sales = Sales(script, shop, buyers, merchant.offers, rhythm, stream(seed, "arrivals"))
            records = self._named(sandbox, scenario, sales, merchant, begun, taken)
            self._crowd(scenario, sales)
            script.run()
            records.check()
        sandbox.sample = _sample(store, merchant.offers)

    def _named(
        self, sandbox: Sandbox, scenario: Scenario, sales: Sales, merchant: Merchant, begun: int, taken: set[str]
    ) -> Records:
        """Personas and explicit records: what a scenario names is planned before anything is drawn."""
        records = Records(sales, merchant, self._requests, begun, scenario.name, taken)
        catalogue = [spec.table in ("projects", "plans", "products") for spec in scenario.records]
        for number, spec in enumerate(scenario.records):
            if catalogue[number]:
                records.plan(number, spec)
        for persona in scenario.personas:
            body = expand(persona.fields)
            said = {name: value for name, value in body.items() if name != "id"}
            self._requests.check("CustomerCreate", said, persona.node["customer"].fail)
            sandbox.personas[persona.name] = plan_persona(sales, persona, body, sandbox.seed, taken)
        for number, spec in enumerate(scenario.records):
            if not catalogue[number]:
                records.plan(number, spec)
        return records

    def _crowd(self, scenario: Scenario, sales: Sales) -> None:
        """Everybody else."""
        if not sales.selling and (scenario.owing or scenario.orders > sales.planned):
            asked = scenario.root["everybody" if scenario.owing else "orders"]
            raise asked.fail("nothing can be bought: no active project of `projects` has a plan")
        people = max(0, scenario.customers - sales.buyers.named)
        if scenario.owing:
            sales.owe(people)
        else:
            sales.plan(people, scenario.orders, scenario.pending)

    def _load(self) -> People:
        if self._people is None:
            self._catalogue = load_catalogue(self._files.folder / "catalogue", self._files)
            faker = seeded_faker(POOL_SEED)
            self._people = People(self._catalogue, faker)
            self._slogans = slogans_of(self._catalogue, faker)
        return self._people

    def _merchant(self, sandbox: Sandbox, scenario: Scenario, begun: int) -> Store:
        name, city = scenario.merchant
        merchant = memory.Merchant(MERCHANT_ID, USER_ID, name, city, iso(begun))
        sandbox.home = merchant.id
        store = sandbox.stores[merchant.id] = Store(merchant, sandbox.rules.layout)
        return store

    def _shelves(self, scenario: Scenario, seed: int) -> list[Shelf]:
        assert self._catalogue is not None
        if isinstance(scenario.projects, int):
            drawn = project_blueprints(
                stream(seed, "projects", "drawn"), self._catalogue, scenario.projects, self._slogans
            )
            shares = (30, 20, 14, 10, 8, 6, 5, 4)
            return [
                Shelf(_active(blueprint, shares[min(at, len(shares) - 1)]), blueprint, drawn_plans(blueprint))
                for at, blueprint in enumerate(drawn)
            ]
        return [self._shelf(spec, seed) for spec in scenario.projects]

    def _shelf(self, spec: ProjectSpec, seed: int) -> Shelf:
        assert self._catalogue is not None
        blueprint = project_blueprint(stream(seed, "projects", spec.slug), self._catalogue, spec.slug, self._slogans)
        if blueprint is None:
            raise spec.node["slug"].fail(f"the catalogue has no project {spec.slug!r}")
        return Shelf(spec, blueprint, spec.plans or drawn_plans(blueprint))


class _Wanted(NamedTuple):
    """What decides a world, but for its now."""

    scenario: str
    text: str
    seed: int
    secret: bytes
    base_url: str


def _still_fresh(made: int, clock: Clock) -> bool:
    """Whether a world made then serves now: at the same instant, or a little later where the clock runs."""
    return made == clock.now if clock.frozen else 0 <= clock.now - made <= SHARED_FOR


def _records(sandbox: Sandbox) -> int:
    return sum(sandbox.counts().values())


def _copy(pristine: Sandbox, sandbox: Sandbox) -> None:
    twin = pristine.fork(sandbox.name)
    sandbox.timers, sandbox.stores, sandbox.home, sandbox.events = twin.timers, twin.stores, twin.home, twin.events
    sandbox.sample, sandbox.personas = twin.sample, twin.personas
    sandbox.credentials = dict(pristine.credentials)


@contextmanager
def _unheard(sandbox: Sandbox) -> Iterator[Callable[[], None]]:
    """Events are raised from when the first webhook listens: what the block is given has that begin.

    In the past people pay by themselves and deliveries follow the standard schedule, whatever the settings say.
    """
    rules, settings = sandbox.rules, sandbox.settings
    silent = {
        name: replace(lifecycle, moves=tuple(move._replace(events=()) for move in lifecycle.moves))
        for name, lifecycle in rules.lifecycles.items()
    }

    def heard() -> None:
        sandbox.rules = rules

    changes = {name: dict.fromkeys(known, ()) for name, known in rules.changes.items()}
    sandbox.rules = replace(rules, lifecycles=silent, changes=changes)
    sandbox.settings = SandboxSettings()
    try:
        yield heard
    finally:
        sandbox.rules, sandbox.settings = rules, settings


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without the garbage collector, which would walk the growing world again and again and find nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            # What was made is there to stay: it joins the old objects without being looked through first.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def _active(blueprint: ProjectBlueprint, share: float) -> ProjectSpec:
    return ProjectSpec(blueprint.slug, "active", share, (), 0, Node(None, "", blueprint.slug))


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
