"""Personas: what the customers have bought whom tests ask for by name, whatever the now; and one
who comes into a running sandbox with such a past.

That life is lived in a copy of what it needs: the plans that can be bought and the sandbox's ids,
with a clock that goes from the first purchase to the present of the sandbox. The records that the
copy has then are written to the sandbox in one step.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from random import Random
from typing import Any

from ..core.clock import DAY, HOUR, Clock, iso, parse_iso
from ..core.problem import Conflict
from ..core.record import Body, without
from ..core.timers import Timers
from ..domain.calendar import add_interval
from ..domain.customers import changed_customer
from ..domain.subscriptions import CHARGED
from ..engine import resources
from ..engine.draft import Draft
from ..engine.kept import Budget, Log
from ..engine.lists import EventLog
from ..engine.sandbox import Status
from ..engine.tables.store import Store
from .lives import begin
from .provider import new_faker
from .purchases import NEVER, Fate, Offer, Visit, is_of_one
from .rhythm import moment
from .scenario import Node, ScenarioError, expand
from .script import Script
from .tables import table

TABLES = ("customers", "orders", "subscriptions")
LETTERS = 3  # of a passport, before its digits
SUITING: Mapping[str, tuple[Callable[[Body], bool], str]] = {
    "month": (lambda plan: is_of_one(plan, "month"), "a monthly plan"),
    "year": (lambda plan: is_of_one(plan, "year"), "a yearly plan"),
    "renewed": (lambda plan: plan["interval"] is not None, "a recurring plan"),
    "one_time": (
        lambda plan: plan["billing_type"] == "one_time" and CHARGED in plan["payment_methods"],
        "a one-time plan that takes cards",
    ),
    "trial": (lambda plan: bool(plan["trial_period_days"] > 1), "a plan with a trial"),
    "boleto": (lambda plan: "boleto" in plan["payment_methods"], "a plan that takes boletos"),
}
"""Which plans suit a story, and how an error calls them."""


def visits_of(persona: Node, offers: list[Offer], now: int, rng: Random) -> list[Visit]:
    """All purchases of a persona up to now. Raises ScenarioError, also if a plan was not there yet.

    Of the plans that suit, those without a trial come first, then those that sell best.
    """
    story = persona.value["story"]
    if story == "none":
        return []
    row = table("stories")[story]
    is_wanted, what = SUITING[row.get("plan", "month")]
    suiting = [offer for offer in offers if offer.is_sold_at(now) and is_wanted(offer.plan)]
    suiting.sort(key=lambda offer: (offer.plan["trial_period_days"] > 0, -offer.share))
    if row.get("every_project"):  # of each the dearest
        suiting.sort(key=lambda offer: offer.plan["amount"])
        suiting = [*{offer.project["id"]: offer for offer in suiting}.values()]
    else:
        suiting = suiting[:1]
    if not suiting:
        raise persona.fail(f"the story {story!r} needs {what} on sale in an active project")
    visits = [visit_of(row, offer, now, rng) for offer in suiting]
    for at, offer, _ in visits:
        if at < offer.opens:
            begins = f"begins on {iso(at)}, and its plan is of {iso(offer.opens)}"
            raise persona.fail(f"the story {story!r} {begins}")
    return visits


def visit_of(row: Body, offer: Offer, now: int, rng: Random) -> Visit:
    """The purchase of a row, as those of the table of stories are."""
    bills, trial_days = row.get("bills", []), offer.plan["trial_period_days"]
    at = now - int(row.get("days", row.get("share_of_trial", 0) * trial_days) * DAY)
    if "date" in row:
        at += 15 * HOUR - at % DAY  # noon in Brasília
        while iso(at)[5:10] != row["date"]:
            at -= DAY
    at = moment(rng, at, int(row.get("sway", 8) * HOUR))
    if bills:
        at = add_interval(at, "month", 1, -len(bills)) - trial_days * DAY
    return Visit(
        at, offer, Fate(row.get("method", "pix"), row.get("outcome", "paid"), bills or ["paid"])
    )


def first_seen(visits: list[Visit], now: int, rng: Random) -> int:
    """When somebody comes for the first time: to buy, or some hours ago."""
    return min((visit.at for visit in visits), default=moment(rng, now - 3 * HOUR, 2 * HOUR))


# -- into a running sandbox


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
        visits = visits_of(persona, offers, now, rng)
    except ScenarioError as error:
        reason = str(error).rpartition(": ")[2]
        raise Conflict(f"{reason[0].upper()}{reason[1:]}.", code="persona_not_possible") from None
    ident, begins = draft.ids.uuid(), first_seen(visits, now, rng)
    script = _script(draft, visits, begins, rng)
    customer = changed_customer(draft.sandbox.rules.new("customers", ident, begins), fields)
    script.step(resources.add, customer)
    for visit in visits:
        script.add(visit.at, begin, script, visit.purchase(rng, customer.public))
    script.run()
    script.close()
    return _move_in(draft, script)


def offers_of(store: Store, plans: list[Body]) -> list[Offer]:
    """What can be bought of some plans, those with most members first."""
    offers = []
    for plan in plans:
        project = store.projects.peek(plan["projectId"])
        if project is not None:
            share = 1 + store.running("planId", plan["id"])
            opens = max(parse_iso(plan["createdAt"]), parse_iso(project["createdAt"]))
            offers.append(Offer(project, plan, share, opens, NEVER, NEVER))
    return offers


def _person(draft: Draft, persona: Node, wanted: Body, name: str) -> Body:
    """The customer: of the persona's kind, with a name, e-mail address and document that
    nobody has.
    """
    fields: Body = expand(persona["customer"])
    own, customers = fields["document"], draft.store.customers
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
    return without(drawn | kept | wanted, "type", "document_type")


def _script(draft: Draft, visits: list[Visit], begins: int, rng: Random) -> Script:
    """A script from an instant (ms) to now, in a sandbox that has only what the visits buy."""
    sandbox, merchant, tables = draft.sandbox, draft.store.merchant, draft.store.tables
    store = Store(merchant, sandbox.rules.layout)
    for _, offer, _ in visits:
        for name, sold in (("projects", offer.project), ("plans", offer.plan)):
            if sold["id"] not in store.tables[name].keys:
                store.replace(name, None, tables[name].open(sold["id"]))
    origin = replace(
        sandbox.origin, home=merchant.id, is_seeding=True, raises_events=False, declining={}
    )
    scratch = replace(
        sandbox,
        origin=origin,
        clock=Clock(begins),
        ids=copy(sandbox.ids),
        log=Log(0, Budget()),
        settings=sandbox.rules.settings,  # a life is the same whatever its sandbox is set to
        timers=Timers(),
        stores={merchant.id: store},
        events=EventLog(),
        status=Status(),
    )
    scratch.ids.position = draft.ids.position
    return Script(scratch, store, begins, draft.now, rng)


def _move_in(draft: Draft, script: Script) -> dict[str, list[Body]]:
    """Write what a script has made, with the timers that lie ahead.

    Returns the records by table.
    """
    found: dict[str, list[Body]] = {name: [] for name in TABLES}
    for name, records in found.items():
        for row in script.store.tables[name].all_rows():
            draft.put(replace(row, record=row.record._replace(version=0)))
            records.append(row.public)
    for timer in script.sandbox.timers.pending():
        draft.at(timer.due, timer.job, timer.subject)
    draft.ids.position = script.sandbox.ids.position
    return found
