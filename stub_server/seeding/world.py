"""A scenario poured into a sandbox: the same scenario, seed and time give the same world on every machine."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..contract.document import Document
from ..contract.schema import Schemas
from ..engine.sandbox import Sandbox
from ..kernel.clock import DAY, HOUR, Clock, iso
from ..kernel.ids import named_uuid
from ..kernel.record import Body
from ..store.memory import Merchant, Store
from .catalogue import Catalogue, load_catalogue
from .chronicle import tell_of_projects
from .draw import Weighted
from .history import record
from .keys import cut_keys
from .market import Market, Offer
from .niches import ProjectBlueprint, project_blueprint, project_blueprints, slogans_of
from .people import People
from .personas import settle_in
from .pools import seeded_faker
from .projects import Shelf, drawn_plans, stock
from .records import Records
from .requests import Requests, check_specs, expand, fails
from .rhythm import office_hour
from .sales import Sales
from .scenario import ProjectSpec, Scenario, ScenarioError, parse_scenario, read_scenario
from .streams import stream
from .tables import Node
from .webhooks import deliver_all, open_webhooks

MERCHANT_ID, USER_ID = named_uuid("merchant", "home"), named_uuid("user", "home")
# The pools of names come from one Faker for all worlds: a seed decides who is drawn, not who exists.
POOL_SEED = 20_260_101
# A world is kept as it was made, so that the next one like it is a copy; big ones would cost too much memory.
MOST_KEPT, MOST_KEPT_RECORDS = 4, 25_000
SHARED_FOR = HOUR  # while the clock runs, a world made so long ago still serves
LEAD_DAYS = 40  # between the merchant's beginning and the first month of sales


class Seeding:
    """Fills sandboxes. What all worlds share is read once, when the first one is filled."""

    def __init__(self, fixtures: Path, document: Document, schemas: Schemas) -> None:
        """`document` is the contract as served, `schemas` its schemas: what a file says is held against them."""
        self._fixtures, self._requests = fixtures, Requests(schemas)
        # What a new resource is before anything is said about it: null, {} or [], then the defaults of its request.
        self._blanks: dict[str, Body] = {
            name: document.blank(name) | document.blank(f"{name}Create") for name in ("Plan", "Product")
        } | {name: document.blank(name) for name in ("ApiKey", "Customer", "Project", "Subscription", "Webhook")}
        self._scopes = [scope["name"] for scope in document.scopes if scope["assignable"]]
        self._catalogue: Catalogue | None = None
        self._people: People | None = None
        self._slogans: tuple[str, ...] = ()
        self._pristine: dict[_Wanted, Sandbox] = {}

    def fill(self, sandbox: Sandbox, secret: bytes) -> None:
        """Fill an empty sandbox with its scenario, up to its clock's now. Raises ScenarioError."""
        text = read_scenario(self._fixtures, sandbox.scenario)
        wanted = _Wanted(sandbox.scenario, text, sandbox.seed, secret, sandbox.rules.base_url)
        pristine = self._pristine.get(wanted)
        if pristine is not None and _still_fresh(pristine.clock.now, sandbox.clock):
            _copy(pristine, sandbox)
            return
        with _undisturbed():
            self._pour(parse_scenario(self._fixtures, sandbox.scenario, text), sandbox, secret)
        if sum(sandbox.counts().values()) <= MOST_KEPT_RECORDS:
            self._pristine.pop(wanted, None)
            self._pristine[wanted] = sandbox.fork("pristine")
            while len(self._pristine) > MOST_KEPT:
                del self._pristine[next(iter(self._pristine))]

    def _pour(self, scenario: Scenario, sandbox: Sandbox, secret: bytes) -> None:
        people = self._load()
        check_specs(scenario, self._requests)
        seed, now = sandbox.seed, sandbox.clock.now
        start = now - round(scenario.months * 365 / 12) * DAY
        begun = office_hour(stream(seed, "merchant"), start - LEAD_DAYS * DAY)
        store = self._merchant(sandbox, scenario, begun)
        shelves = self._shelves(scenario, seed)
        offers = stock(store, self._blanks, shelves, stream(seed, "projects"), begun + 2 * DAY, now)
        endpoints = open_webhooks(
            scenario.webhooks, self._blanks["Webhook"], secret, seed, stream(seed, "webhooks"), begun, now
        )
        market = self._market(sandbox, store, min((e.created for e in endpoints), default=now + 1))
        sales = Sales(store, market, offers, people, seed, self._blanks["Customer"], start)
        with store.loading():
            self._named(sandbox, scenario, sales, start)
            if not sales.selling and (scenario.owing or scenario.orders > sales.orders):
                asked = scenario.root["everybody" if scenario.owing else "orders"]
                raise ScenarioError(
                    str(asked.fail("nothing can be bought: no active project of `projects` has a plan"))
                )
            sales.run(scenario.customers, scenario.orders, scenario.pending, owing=scenario.owing)
        sandbox.timers.set_all(market.due, store.merchant.id)
        sandbox.credentials = cut_keys(
            store,
            self._blanks["ApiKey"],
            scenario.keys,
            self._scopes,
            secret,
            seed,
            stream(seed, "keys"),
            now,
            sandbox.timers,
        )
        tell_of_projects(store, market, offers, sandbox.rules)
        events = record(market.told, sandbox.events, stream(seed, "events", "past"), store, sandbox.rules.payload_keys)
        deliver_all(store, endpoints, events, stream(seed, "deliveries"), now)
        sandbox.sample = _sample(store, offers)

    def _named(self, sandbox: Sandbox, scenario: Scenario, sales: Sales, start: int) -> None:
        """Personas and explicit records: what a scenario names is written before anything is drawn."""
        records = Records(sales, self._requests, self._blanks, sandbox.seed, start, scenario.name)
        catalogue = [spec.table in ("projects", "plans", "products") for spec in scenario.records]
        for number, spec in enumerate(scenario.records):
            if catalogue[number]:
                records.write(number, spec)
        for persona in scenario.personas:
            body = expand(persona.fields)
            said = {name: value for name, value in body.items() if name != "id"}
            self._requests.check("CustomerCreate", said, fails(persona.node["customer"]))
            sandbox.personas[persona.name] = settle_in(sales, persona, body, sandbox.seed)
        for number, spec in enumerate(scenario.records):
            if not catalogue[number]:
                records.write(number, spec)

    def _load(self) -> People:
        if self._people is None:
            self._catalogue = load_catalogue(self._fixtures / "catalogue")
            faker = seeded_faker(POOL_SEED)
            self._people = People(self._catalogue, faker)
            self._slogans = slogans_of(self._catalogue, faker)
        return self._people

    def _merchant(self, sandbox: Sandbox, scenario: Scenario, begun: int) -> Store:
        name, city = scenario.merchant
        merchant = Merchant(MERCHANT_ID, USER_ID, name, city, iso(begun))
        sandbox.home = merchant.id
        store = sandbox.stores[merchant.id] = Store(merchant, sandbox.rules.layout)
        return store

    def _market(self, sandbox: Sandbox, store: Store, since: int) -> Market:
        assert self._catalogue is not None
        return Market(
            now=sandbox.clock.now,
            since=since,
            seller=(store.merchant.name, store.merchant.city, sandbox.rules.base_url),
            blank=dict(self._blanks["Subscription"]),
            orders=sandbox.rules.lifecycles["Order"],
            banks=Weighted(((bank.ispb, bank.name), bank.weight) for bank in self._catalogue.banks),
        )

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
            raise ScenarioError(str(spec.node["slug"].fail(f"the catalogue has no project {spec.slug!r}")))
        return Shelf(spec, blueprint, spec.plans or drawn_plans(blueprint))


class _Wanted(NamedTuple):
    """What decides a world, but for its now."""

    scenario: str
    text: bytes
    seed: int
    secret: bytes
    base_url: str


def _still_fresh(made: int, clock: Clock) -> bool:
    """Whether a world made then serves now: at the same instant, or a little later where the clock runs."""
    return made == clock.now if clock.frozen else 0 <= clock.now - made <= SHARED_FOR


def _copy(pristine: Sandbox, sandbox: Sandbox) -> None:
    twin = pristine.fork(sandbox.name)
    sandbox.timers, sandbox.stores, sandbox.home, sandbox.events = twin.timers, twin.stores, twin.home, twin.events
    sandbox.sample, sandbox.personas = twin.sample, twin.personas
    sandbox.credentials = dict(pristine.credentials)


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
