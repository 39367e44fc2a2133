"""A customer who comes into a running sandbox with a past: the life of a persona, lived in a copy
of what it needs.

The copy has the plans that can be bought and the sandbox's ids, and a clock that goes from the
first purchase to the present of the sandbox. The records that it has then are written to the
sandbox in one step.
"""

from dataclasses import replace
from random import Random
from typing import Any

import orjson

from ..core.clock import HOUR, Clock, iso, parse_iso
from ..core.problem import Conflict
from ..core.record import Body, without
from ..core.timers import Timers
from ..domain.customers import as_buyer, new_customer
from ..engine import resources
from ..engine.draft import Draft
from ..engine.kept import Budget, Log
from ..engine.sandbox import Sandbox
from ..engine.tables.store import Store
from .files import Node, ScenarioError, expand
from .lives import Lives, Purchase
from .personas import Story
from .provider import new_faker, release
from .purchases import Offer, Visit, cart
from .rhythm import moment
from .script import Script

IMPOSSIBLE = "persona_not_possible"
TABLES = ("customers", "orders", "subscriptions")
LETTERS = 3  # of a passport, before its digits


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
    release(faker)
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
    for _, offer, _ in purchases:
        for name, sold in (("projects", offer.project), ("plans", offer.plan)):
            if sold["id"] not in own.tables[name].keys:
                own.replace(name, None, store.tables[name].open(sold["id"]))
    script = Script(scratch, own, begins, draft.now)
    lives = Lives(script, rng)
    public = new_customer(fields, sandbox.rules.defaults["Customer"], iso(begins))
    script.step(resources.add, "customers", public)
    for at, offer, fate in purchases:
        purchase = Purchase(cart(rng, offer), as_buyer(public), public["id"], fate)
        script.add(at, lives.begin, purchase)
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
            hidden = orjson.loads(row.record.hidden)
            draft.create(
                draft.store.tables[name], row.id, row.public, hidden, created=row.record.created
            )
            records.append(row.public)
    for timer in scratch.timers.pending():
        draft.at(timer.due, timer.job, timer.subject)
    draft.ids.position = scratch.ids.position
    return found
