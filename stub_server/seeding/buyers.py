"""The customers of a seeded year: who comes when, who comes back, and what becomes of their records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from random import Random
from typing import NamedTuple

from ..domain.customers import new_customer
from ..domain.orders import buyer as buyer_of
from ..kernel.clock import MINUTE, iso
from ..kernel.record import Body
from ..store.memory import Store
from .draw import pick
from .market import Market
from .people import ALPHANUMERIC_SINCE_MS, People, is_alphanumeric
from .rhythm import Rhythm
from .streams import stream, uuid

BUYERS_METADATA: tuple[dict[str, str], ...] = ({},) * 7 + ({"origin": "checkout"}, {"newsletter": "true"})
#: Of those who have been entered and have not bought yet.
OTHERS_METADATA: tuple[dict[str, str], ...] = ({},) * 2 + ({"origin": "import"},) * 2 + ({"newsletter": "true"},)
#: Of so many customers who came last one comes back: each has as good a chance as the others, and is at hand.
AT_HAND = 512
RENUMBERED = 0.08


class Comer(NamedTuple):
    """Somebody before the first purchase: id, customer, the copy that orders carry, and perhaps a later mobile number.

    All of it follows from the seed and the place in the crowd: people are the same whatever the time.
    """

    id: str
    customer: Body
    buyer: Body
    number: str | None


class Known(NamedTuple):
    """A customer who may come back: the record, the copy that orders carry, first purchase (ms), projects joined."""

    customer: Body
    buyer: Body
    first: int
    bought: set[str]


class Buyers:
    """Persons become customers, each with the copy that its orders carry."""

    def __init__(self, store: Store, market: Market, people: People, seed: int, blank: Body, rhythm: Rhythm) -> None:
        self.store, self.market, self.people, self.blank, self.rhythm = store, market, people, blank, rhythm
        self._luck, self._moves = stream(seed, "people"), stream(seed, "people", "moves")
        self._ids, self._idle = stream(seed, "customers"), stream(seed, "idle")
        self._too_new: list[Comer] = []
        self.at_hand: list[Known] = []
        self.newcomers = 0

    def crowd(self, count: int, at: int) -> Iterator[Comer]:
        """So many persons, as they may be at an instant (ms), whose documents nobody has yet."""
        held = self.store.customers
        for person in self.people.crowd(self._luck, count, at_ms=at):
            luck, ident = self._moves.random(), uuid(self._ids)
            number = f"9{60_000_000 + int(self._moves.random() * 40_000_000)}"
            if held.holder("document", person.document) is None:
                customer = person.customer()
                moves = luck < RENUMBERED and "mobile_phone" in customer["phones"]
                yield Comer(ident, customer, person.order_customer(), number if moves else None)

    def coming(self, crowd: Iterator[Comer], at: int) -> Comer:
        """Who comes at an instant: companies with letters in their CNPJ wait until there are such."""
        if at >= ALPHANUMERIC_SINCE_MS and self._too_new:
            return self._too_new.pop()
        for comer in crowd:
            if at >= ALPHANUMERIC_SINCE_MS or not is_alphanumeric(comer.customer["document"]):
                return comer
            self._too_new.append(comer)
        return self._too_new.pop()

    def returning(self, rng: Random, project: str, at: int) -> Known:
        """One of those at hand: if it can be somebody who has come before an instant and not joined the project."""
        hand, draw = self.at_hand, rng.random
        known = hand[int(draw() * len(hand))]
        for _ in range(12):
            if known.first < at and project not in known.bought:
                break
            known = hand[int(draw() * len(hand))]
        return known

    def newcomer(self, comer: Comer, at: int, project: str, rng: Random) -> tuple[Body, Body]:
        """Write somebody who buys for the first time: the record, and the copy that orders carry."""
        customer = self._customer(comer, at, rng)
        known = Known(customer, comer.buyer, at, {project})
        if self.newcomers < AT_HAND:
            self.at_hand.append(known)
        else:
            self.at_hand[self.newcomers % AT_HAND] = known
        self.newcomers += 1
        return customer, comer.buyer

    def enter_rest(self, crowd: Iterator[Comer]) -> None:
        """Write those who have not bought anything yet."""
        young = self.rhythm.share(ALPHANUMERIC_SINCE_MS)
        for comer in chain(self._too_new, crowd):
            low = max(0.03, young) if is_alphanumeric(comer.customer["document"]) else 0.03
            at = self.rhythm.at(low + max(0.0, 0.99 - low) * self._idle.random())
            self._customer(comer, at, self._idle, OTHERS_METADATA)

    def _customer(
        self, comer: Comer, at: int, rng: Random, metadata: tuple[dict[str, str], ...] = BUYERS_METADATA
    ) -> Body:
        public = new_customer(comer.customer | {"metadata": pick(rng, metadata)}, self.blank, iso(at))
        public["id"] = comer.id
        if comer.number is not None:
            return self._renumbered(public, comer.number, at, rng)
        self.add(public, at)
        return public

    def _renumbered(self, public: Body, number: str, at: int, rng: Random) -> Body:
        """A customer who has another mobile number by now; orders keep what they were sent."""
        low = self.rhythm.share(at)
        since = max(at + MINUTE, self.rhythm.at(low + (1 - low) * rng.random()))
        phones = public["phones"] | {"mobile_phone": public["phones"]["mobile_phone"] | {"number": number}}
        changed = public | {"phones": phones, "updatedAt": iso(min(since, self.market.now))}
        self.store.add("customers", public["id"], changed, {}, at)
        self.market.tell(at, "customer.created", "customers", public, {})
        self.market.tell(min(since, self.market.now), "customer.updated", "customers", changed, {})
        return changed

    def add(self, public: Body, at: int) -> None:
        """Write a customer."""
        self.store.add("customers", public["id"], public, {}, at)
        self.market.tell(at, "customer.created", "customers", public, {})


def flat(customer: Body) -> Body:
    """A customer as an order carries it."""
    phones = {
        name: f"+{phone['country_code']}{phone['area_code']}{phone['number']}"
        for name, phone in customer["phones"].items()
    }
    return buyer_of(customer | {"phones": phones})
