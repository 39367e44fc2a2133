"""Personas: what the customers have bought whom tests ask for by name, whatever the now; and one
who comes into a running sandbox with such a past.

That life is lived in a copy of what it needs: the plans that can be bought and the sandbox's ids,
with a clock that goes from the first purchase to the present of the sandbox. The records that the
copy has then are written to the sandbox in one step.
"""

from calendar import isleap
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

from ..core.clock import DAY, HOUR, Clock, iso, parse_iso
from ..core.problem import Conflict
from ..core.record import Body, without
from ..core.timers import Timers
from ..domain.calendar import add_interval
from ..domain.customers import as_buyer, changed_customer
from ..domain.subscriptions import CHARGED
from ..engine import resources
from ..engine.draft import Draft
from ..engine.kept import Budget, Log
from ..engine.sandbox import Sandbox
from ..engine.tables.store import Store
from .lives import Purchase, begin
from .provider import new_faker
from .purchases import Fate, Offer, Visit, cart, is_of_one
from .rhythm import moment
from .scenario import Node, ScenarioError, expand
from .script import Script
from .tables import table

IMPOSSIBLE = "persona_not_possible"
TABLES = ("customers", "orders", "subscriptions")
LETTERS = 3  # of a passport, before its digits
SWAY = 8  # hours: no story depends on them
SUITING: Mapping[str, tuple[Callable[[Body], bool], str]] = {
    "one_time": (
        lambda plan: plan["billing_type"] == "one_time" and CHARGED in plan["payment_methods"],
        "a one-time plan that takes cards",
    ),
    "trial": (lambda plan: bool(plan["trial_period_days"] > 1), "a plan with a trial"),
    "boleto": (lambda plan: "boleto" in plan["payment_methods"], "a plan that takes boletos"),
}
"""Which plans suit a story, and how an error calls them."""
BY = {"one_time": CHARGED, "boleto": "boleto"}
"""How such a plan is paid; others by PIX."""


class Story:
    """Chooses the plans and the instants of one persona's purchases.

    Plans on sale are sorted by sales, best first.
    """

    def __init__(self, offers: list[Offer], now: int, node: Node, rng: Random) -> None:
        self.now, self.node, self.rng = now, node, rng
        self.offers = sorted(
            [offer for offer in offers if offer.is_sold_at(now)], key=lambda offer: -offer.share
        )

    def purchases(self) -> list[Visit]:
        """All purchases of the persona. Raises ScenarioError, also if a plan was not there yet."""
        visits = self._visits()
        for at, offer, *_ in visits:
            if at < offer.opens:
                story = self.node.value["story"]
                raise self.node.fail(
                    f"the story {story!r} begins on {iso(at)}, and its plan is of"
                    f" {iso(offer.opens)}"
                )
        return visits

    def _visits(self) -> list[Visit]:
        story = self.node.value["story"]
        if story == "spender":
            return self._dearest()
        if story in ("leap_month", "leap_year"):
            return [self._on_leap_day(story.removeprefix("leap_"))]
        if story == "none":
            return []
        return [self.visit(table("stories")[story])]

    def visit(self, row: Body) -> Visit:
        """The purchase of a row, as those of the table of stories are."""
        kind, bills = row.get("plan", ""), row.get("bills", [])
        offer = self._plan(*SUITING[kind]) if kind in SUITING else self._monthly()
        trial_days = offer.plan["trial_period_days"]
        days = row.get("days", row.get("share_of_trial", 0) * trial_days)
        at = self._days_ago(days, row.get("sway", SWAY))
        if bills:
            at = add_interval(at, "month", 1, -len(bills)) - trial_days * DAY
        method = BY.get(kind, "pix")
        return Visit(at, offer, Fate(method, row.get("outcome", "paid"), bills or ["paid"]))

    def _plan(self, wanted: Callable[[Body], bool], what: str) -> Offer:
        """The best selling plan of the kind that a story needs. Raises ScenarioError."""
        for offer in self.offers:
            if wanted(offer.plan):
                return offer
        raise self.node.fail(
            f"the story {self.node.value['story']!r} needs {what} on sale in an active project"
        )

    def _monthly(self) -> Offer:
        """A monthly plan, one without a trial if there is one."""
        for offer in self.offers:
            if is_of_one(offer.plan, "month") and not offer.plan["trial_period_days"]:
                return offer
        return self._plan(lambda plan: is_of_one(plan, "month"), "a monthly plan")

    def _days_ago(self, days: float, sway: float = SWAY) -> int:
        """About so many days ago, at a likely hour."""
        return moment(self.rng, self.now - int(days * DAY), int(sway * HOUR))

    def _dearest(self) -> list[Visit]:
        """The dearest membership of each project."""
        recurring = [offer for offer in self.offers if offer.plan["interval"] is not None]
        if not recurring:
            recurring.append(self._monthly())
        recurring.sort(key=lambda offer: offer.plan["amount"])
        dearest = {offer.project["id"]: offer for offer in recurring}
        visits = []
        for number, offer in enumerate(dearest.values()):
            visits.append(Visit(self._days_ago(290 - 19 * (number % 12)), offer, Fate("pix")))
        return visits

    def _on_leap_day(self, interval: str) -> Visit:
        offer = self._plan(
            lambda plan: is_of_one(plan, interval) and not plan["trial_period_days"],
            f"a plan of one {interval} without trial",
        )
        latest = datetime.fromtimestamp((self.now - 60 * DAY) / 1000, UTC)
        year = latest.year
        while not isleap(year) or datetime(year, 2, 29, 12, tzinfo=UTC) > latest:
            year -= 1
        at = int(datetime(year, 2, 29, 12, tzinfo=UTC).timestamp()) * 1000
        return Visit(at + int(self.rng.random() * 6 * HOUR), offer, Fate("pix"))


def live(draft: Draft, persona: Node, wanted: Body, offers: list[Offer]) -> dict[str, list[Body]]:
    """Add a customer who has lived as a persona up to now to a draft; returns the new records by
    table.

    `wanted` are members of the customer that the request names; `offers` is what can be bought.
    Raises Conflict.
    """
    name, now = draft.ids.uuid(), draft.now
    rng = Random(name)
    fields = _person(draft, persona, wanted, name)
    try:
        purchases = Story(offers, now, persona, rng).purchases()
    except ScenarioError as error:
        reason = str(error).rpartition(": ")[2]
        raise Conflict(f"{reason[0].upper()}{reason[1:]}.", code=IMPOSSIBLE) from None
    ident = draft.ids.uuid()
    begins = min((visit.at for visit in purchases), default=moment(rng, now - 3 * HOUR, 2 * HOUR))
    return _move_in(draft, _scratch(draft, purchases, fields | {"id": ident}, begins, rng))


def offers_of(store: Store, plans: list[Body]) -> list[Offer]:
    """What can be bought of some plans, those with most members first."""
    offers = []
    for plan in plans:
        project = store.projects.peek(plan["projectId"])
        if project is not None:
            share = 1 + store.running("planId", plan["id"])
            opens = max(parse_iso(plan["createdAt"]), parse_iso(project["createdAt"]))
            offers.append(Offer(project, plan, share, opens, 1 << 62, None, ()))
    return offers


def _person(draft: Draft, persona: Node, wanted: Body, name: str) -> Body:
    """The customer: of the persona's kind, with a name, e-mail address and document that
    nobody has.
    """
    fields: Body = expand(persona["customer"]) | {"id": None}
    own, customers = str(fields["document"]), draft.store.customers
    # Faker types `company` as text
    faker: Any = new_faker(draft.sandbox.origin.seed, "newcomers", name)
    is_abroad = fields["address"].get("country", "BR") != "BR"
    while True:
        drawn: Any = faker.company() if "/" in own else faker.person()
        if is_abroad:
            drawn = fields | {"document": own[:LETTERS] + faker.numerify("######")}
        if customers.holder("document", drawn["document"]) is None:
            break
    kept = {"phones": fields["phones"], "address": fields["address"]}
    return without(drawn | kept | wanted, "id", "type", "document_type")


def _scratch(
    draft: Draft, purchases: list[Visit], fields: Body, begins: int, rng: Random
) -> Sandbox:
    """A sandbox in which the customer has lived from an instant (ms) to now. Raises Conflict."""
    sandbox, store = draft.sandbox, draft.store
    scratch = sandbox.fork(sandbox.name, with_stores=False)
    scratch.origin = replace(
        sandbox.origin, home=store.merchant.id, is_seeding=True, raises_events=False, declining={}
    )
    scratch.clock, scratch.timers, scratch.log = Clock(begins), Timers(), Log(0, Budget())
    scratch.ids.position = draft.ids.position
    scratch.settings = sandbox.rules.settings  # a life is the same whatever its sandbox is set to
    own = scratch.stores[scratch.origin.home] = Store(store.merchant, sandbox.rules.layout)
    for _, offer, *_ in purchases:
        for name, sold in (("projects", offer.project), ("plans", offer.plan)):
            if sold["id"] not in own.tables[name].keys:
                own.replace(name, None, store.tables[name].open(sold["id"]))
    script = Script(scratch, own, begins, draft.now, rng)
    customer = changed_customer(sandbox.rules.new("customers", fields["id"], begins), fields)
    script.step(resources.add, customer)
    for at, offer, fate, _ in purchases:
        purchase = Purchase(cart(rng, offer), as_buyer(customer.public), customer.id, fate)
        script.add(at, begin, script, purchase)
    script.run()
    script.close()
    return scratch


def _move_in(draft: Draft, scratch: Sandbox) -> dict[str, list[Body]]:
    """Write what a scratch sandbox has of the life, with the timers that lie ahead.

    Returns the records by table.
    """
    found: dict[str, list[Body]] = {name: [] for name in TABLES}
    for name, records in found.items():
        for row in scratch.store.tables[name].all_rows():
            draft.put(replace(row, record=row.record._replace(version=0)))
            records.append(row.public)
    for timer in scratch.timers.pending():
        draft.at(timer.due, timer.job, timer.subject)
    draft.ids.position = scratch.ids.position
    return found
