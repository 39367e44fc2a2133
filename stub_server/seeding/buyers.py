"""The customers of a seeded year: who comes when, who comes back, and what becomes of their records."""

from collections.abc import Iterator, Sequence
from random import Random

from ..domain.customers import as_buyer, changed_customer, flat_phones, new_customer
from ..drawing.draw import pick, stream
from ..drawing.people import ALPHANUMERIC_SINCE_MS, People, mobile_number
from ..drawing.rhythm import Rhythm
from ..engine import resources
from ..engine.draft import Draft
from ..kernel.clock import MINUTE, iso
from ..kernel.ids import uuid_text
from ..kernel.record import Body
from .script import Script

BUYERS_METADATA: tuple[dict[str, str], ...] = ({},) * 7 + ({"origin": "checkout"}, {"newsletter": "true"})
# Of those who have signed up and have not bought yet.
OTHERS_METADATA: tuple[dict[str, str], ...] = ({},) * 2 + ({"origin": "landing_page"},) * 2 + ({"newsletter": "true"},)
RECENT = 512  # who comes back is one of so many newest buyers, all equally likely
RENUMBERED = 0.15  # of the customers, while the past lasts: they have a new mobile number
WAITED = 0.04  # of those who come once a CNPJ may have letters, as long as companies with such a CNPJ wait


class Buyer:
    """Somebody with an id who is or will be a customer, and may come back.

    `order_copy` is the customer as the next order has it, `new_number` a mobile number that they get later, `joined`
    the projects of which they bought a plan. Id, customer and new number follow from the seed and the place in the
    crowd: people are the same whatever the time.
    """

    def __init__(self, ident: str, customer: Body, new_number: str | None) -> None:
        self.id, self.customer, self.new_number = ident, customer, new_number
        self.order_copy = as_buyer(customer)
        self.joined: set[str] = set()


class Buyers:
    """Creates customers. `in_use` are the documents of those whom the scenario names, `named` is how many these are.

    `recent` are the newest buyers, of whom some come back.
    """

    def __init__(self, script: Script, people: People, seed: int, rhythm: Rhythm, in_use: set[str]) -> None:
        self.script, self.people, self.rhythm, self.in_use = script, people, rhythm, in_use
        self.defaults = script.sandbox.rules.defaults["Customer"]
        self._luck, self._moves = stream(seed, "people"), stream(seed, "people", "moves")
        self._ids, self._idle = stream(seed, "customers"), stream(seed, "idle")
        self._letters = stream(seed, "people", "letters")
        self._crowd: Iterator[Buyer] = iter(())
        self._too_new: list[Buyer] = []
        self.recent: list[Buyer] = []
        self.named = self._remembered = 0

    def gather(self, count: int, at: int) -> None:
        """Draw so many persons, as they may be at an instant (ms); those whose document is in use do not come."""
        crowd = self.people.crowd(self._luck, count, at)
        self._crowd = _buyers(crowd, self._moves, self._ids, self.in_use)

    def _next(self, at: int) -> Buyer | None:
        """Who comes at an instant: companies whose CNPJ has letters wait until such are issued, then come singly."""
        if at >= ALPHANUMERIC_SINCE_MS and self._too_new and self._letters.random() < WAITED:
            return self._too_new.pop()
        for buyer in self._crowd:
            if at >= ALPHANUMERIC_SINCE_MS or buyer.customer["document"].isdigit():
                return buyer
            self._too_new.append(buyer)
        return self._too_new.pop() if self._too_new else None

    def newcomer(self, draft: Draft, rng: Random, metadata: Sequence[dict[str, str]] = BUYERS_METADATA) -> Buyer | None:
        """Create the next customer, if anybody is left."""
        buyer = self._next(draft.now)
        if buyer is None:
            return None
        fields = buyer.customer | {"metadata": pick(rng, metadata)}
        resources.add(draft, "customers", new_customer(fields, self.defaults, iso(draft.now)) | {"id": buyer.id})
        if buyer.new_number is not None:
            share = self.rhythm.share(draft.now) + self._moves.random()
            if share < 1:
                since = max(draft.now + MINUTE, self.rhythm.at(share))
                self.script.add(min(since, self.script.end), self.script.step, self._renumber, buyer)
        return buyer

    def remember(self, buyer: Buyer) -> None:
        """Keep somebody who buys for the first time among the recent buyers."""
        if self._remembered < RECENT:
            self.recent.append(buyer)
        else:
            self.recent[self._remembered % RECENT] = buyer
        self._remembered += 1

    def returning(self, rng: Random, project: str) -> Buyer:
        """One of the recent buyers, in most cases one who has not joined the project."""
        buyer, tries = pick(rng, self.recent), 12
        while project in buyer.joined and tries:
            buyer, tries = pick(rng, self.recent), tries - 1
        return buyer

    def plan_others(self, count: int) -> None:
        """Plan those who sign up and do not buy anything yet."""
        for _ in range(count):
            self.script.add(self.rhythm.at(0.03 + 0.96 * self._idle.random()), self.enter_other)

    def enter_other(self) -> None:
        """Create a customer who does not buy anything yet, if anybody is left."""
        self.script.step(self.newcomer, self._idle, OTHERS_METADATA)

    def _renumber(self, draft: Draft, buyer: Buyer) -> None:
        """Give a customer the new mobile number; earlier orders keep the old one."""
        row = draft.open(draft.store.customers, buyer.id)
        assert row is not None  # nobody deletes one
        phones = row.public["phones"]
        phones = phones | {"mobile_phone": phones["mobile_phone"] | {"number": buyer.new_number}}
        changed = changed_customer(row.public, {"phones": phones}, iso(draft.now))
        resources.change(draft, draft.store.customers, row, changed)
        buyer.order_copy = buyer.order_copy | {"phones": flat_phones(phones)}


def _buyers(crowd: Iterator[Body], moves: Random, ids: Random, in_use: set[str]) -> Iterator[Buyer]:
    """Those of a crowd whose documents are not in use.

    Seldom all of them come: a function of the module, since a generator that is left over must not refer to the actors,
    or a cycle would keep the whole sandbox in memory.
    """
    for person in crowd:
        luck, ident, number = moves.random(), uuid_text(ids.getrandbits(128)), mobile_number(moves)
        if person["document"] not in in_use:
            renumbered = luck < RENUMBERED and "mobile_phone" in person["phones"]
            yield Buyer(ident, person, number if renumbered else None)
