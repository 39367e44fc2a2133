"""The customers of a seeded year: who comes when, who comes back, and what becomes of their records."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from ..domain.customers import changed_customer, flat_phones, new_customer
from ..domain.orders import buyer as buyer_of
from ..drawing.draw import pick
from ..drawing.people import ALPHANUMERIC_SINCE_MS, People, Person, is_alphanumeric
from ..drawing.rhythm import Rhythm
from ..drawing.streams import stream, uuid
from ..engine import resources
from ..engine.draft import Draft
from ..kernel.clock import MINUTE, iso
from ..kernel.record import Body
from .script import Script

BUYERS_METADATA: tuple[dict[str, str], ...] = ({},) * 7 + ({"origin": "checkout"}, {"newsletter": "true"})
#: Of those who have been entered and have not bought yet.
OTHERS_METADATA: tuple[dict[str, str], ...] = ({},) * 2 + ({"origin": "landing_page"},) * 2 + ({"newsletter": "true"},)
#: Of so many customers who came last one comes back: each has as good a chance as the others, and is at hand.
AT_HAND = 512
RENUMBERED = 0.15  # within as long as the world's past
WAITED = 0.04  # of those who come, while companies with letters in their CNPJ have waited


class Prospect(NamedTuple):
    """Somebody before the first purchase: id, customer, the copy that orders carry, and perhaps a later mobile number.

    All of it follows from the seed and the place in the crowd: people are the same whatever the time.
    """

    id: str
    customer: Body
    buyer: Body
    number: str | None


class Known:
    """A customer who may come back: the id, the copy that the next order carries, the projects joined."""

    __slots__ = ("buyer", "id", "joined")

    def __init__(self, ident: str, buyer: Body) -> None:
        self.id, self.buyer = ident, buyer
        self.joined: set[str] = set()


class Buyers:
    """Persons become customers.

    `taken` are the documents that a scenario has given to somebody, `named` is how many customers it names.
    """

    def __init__(self, script: Script, people: People, seed: int, rhythm: Rhythm, taken: set[str]) -> None:
        self.script, self.people, self.rhythm, self.taken = script, people, rhythm, taken
        self.defaults = script.sandbox.rules.defaults["Customer"]
        self._luck, self._moves = stream(seed, "people"), stream(seed, "people", "moves")
        self._ids, self._idle = stream(seed, "customers"), stream(seed, "idle")
        self._letters = stream(seed, "people", "letters")
        self._crowd: Iterator[Prospect] = iter(())
        self._too_new: list[Prospect] = []
        self.at_hand: list[Known] = []
        self.named = self._buyers = 0

    def gather(self, count: int, at: int) -> None:
        """Have so many persons come, as they may be at an instant (ms), whose documents nobody has yet."""
        crowd = self.people.crowd(self._luck, count, at_ms=at)
        self._crowd = _prospects(crowd, self._moves, self._ids, self.taken)

    def _coming(self, at: int) -> Prospect | None:
        """Who comes at an instant: companies with letters in their CNPJ wait until there are such, then come singly."""
        if at >= ALPHANUMERIC_SINCE_MS and self._too_new and self._letters.random() < WAITED:
            return self._too_new.pop()
        for prospect in self._crowd:
            if at >= ALPHANUMERIC_SINCE_MS or not is_alphanumeric(prospect.customer["document"]):
                return prospect
            self._too_new.append(prospect)
        return self._too_new.pop() if self._too_new else None

    def newcomer(self, draft: Draft, rng: Random) -> Known | None:
        """Enter somebody who is to buy, if anybody is left."""
        prospect = self._coming(draft.now)
        if prospect is None:
            return None
        known = Known(prospect.id, prospect.buyer)
        self._enter(draft, prospect, known, pick(rng, BUYERS_METADATA))
        return known

    def sign_up(self, rng: Random) -> Known | None:
        """Enter somebody who will buy later, if anybody is left."""
        draft = self.script.draft()
        known = self.newcomer(draft, rng)
        if known is not None:
            self.script.record(draft)
        return known

    def remember(self, known: Known) -> None:
        """Somebody buys for the first time, and may come back."""
        if self._buyers < AT_HAND:
            self.at_hand.append(known)
        else:
            self.at_hand[self._buyers % AT_HAND] = known
        self._buyers += 1

    def returning(self, rng: Random, project: str) -> Known:
        """One of those at hand: somebody who has not joined the project, if it can be."""
        hand, draw = self.at_hand, rng.random
        known = hand[int(draw() * len(hand))]
        for _ in range(12):
            if project not in known.joined:
                break
            known = hand[int(draw() * len(hand))]
        return known

    def plan_others(self, count: int) -> None:
        """Plan those who are entered and do not buy anything yet."""
        for _ in range(count):
            self.script.add(self.rhythm.at(0.03 + 0.96 * self._idle.random()), self.enter_other)

    def enter_other(self) -> None:
        """Enter somebody who has not bought anything yet, if anybody is left."""
        draft = self.script.draft()
        prospect = self._coming(draft.now)
        if prospect is not None:
            self._enter(draft, prospect, Known(prospect.id, prospect.buyer), pick(self._idle, OTHERS_METADATA))
            self.script.record(draft)

    def _enter(self, draft: Draft, prospect: Prospect, known: Known, metadata: dict[str, str]) -> None:
        public = new_customer(prospect.customer | {"metadata": metadata}, self.defaults, iso(draft.now))
        public["id"] = prospect.id
        resources.add_customer(draft, public)
        if prospect.number is not None:
            share = self.rhythm.share(draft.now) + self._moves.random()
            if share < 1:
                since = max(draft.now + MINUTE, self.rhythm.at(share))
                self.script.add(min(since, self.script.end), self._renumber, known, prospect.number)

    def _renumber(self, known: Known, number: str) -> None:
        """A customer has another mobile number from now on; orders keep what they were sent."""
        draft = self.script.draft()
        row = draft.open(self.script.store.customers, known.id)
        assert row is not None  # nobody deletes one
        phones = row.public["phones"]
        phones = phones | {"mobile_phone": phones["mobile_phone"] | {"number": number}}
        changed = changed_customer(row.public, {"phones": phones}, iso(draft.now))
        resources.change(draft, self.script.store.customers, row, changed)
        self.script.record(draft)
        known.buyer = known.buyer | {"phones": flat_phones(phones)}


def _prospects(crowd: Iterator[Person], moves: Random, ids: Random, taken: set[str]) -> Iterator[Prospect]:
    """Those of a crowd whose documents nobody has yet.

    Seldom all of them come. What is left over must not hold the actors, or a cycle would keep the whole world.
    """
    for person in crowd:
        luck, ident = moves.random(), uuid(ids)
        number = f"9{60_000_000 + int(moves.random() * 40_000_000)}"
        if person.document not in taken:
            customer = person.customer()
            renumbered = luck < RENUMBERED and "mobile_phone" in customer["phones"]
            yield Prospect(ident, customer, person.order_customer(), number if renumbered else None)


def flat(customer: Body) -> Body:
    """A customer as an order carries it."""
    return buyer_of(customer | {"phones": flat_phones(customer["phones"])})
