"""The customers of a seeded year: who comes when, who comes back, and what becomes of their records."""

from collections import deque
from collections.abc import Iterator
from random import Random

from faker import Faker

from ..domain.customers import as_buyer, changed_customer, flat_phones, new_customer
from ..engine import resources
from ..engine.draft import Draft
from ..kernel.clock import MINUTE, iso
from ..kernel.ids import uuid_text
from ..kernel.record import Body
from .people import ALPHANUMERIC_SINCE_MS
from .provider import stream
from .purchases import pick
from .rhythm import Rhythm
from .script import Script

RECENT = 512  # who comes back is one of so many newest buyers, all equally likely
RENUMBERED = 0.15  # of the first customers, and ever fewer of the later ones: they have a new mobile number
WAITED = 0.04  # of those who come once a CNPJ may have letters, as long as companies with such a CNPJ wait


class Buyer:
    """Somebody with an id who is or will be a customer, and may come back.

    `order_copy` is the customer as the next order has it, and `joined` the projects of which they bought a plan.
    `new_number` is a mobile number that they get later. All this follows from the seed and the place in the crowd:
    people are the same whatever the time.
    """

    def __init__(self, ident: str, customer: Body, new_number: str | None) -> None:
        self.id, self.customer, self.new_number = ident, customer, new_number
        self.order_copy = as_buyer(customer)
        self.joined: set[str] = set()


class Buyers:
    """Creates customers. `in_use` are the documents of those whom the scenario names, `named` is how many these are.

    `recent` are the newest buyers, of whom some come back.
    """

    def __init__(self, script: Script, rhythm: Rhythm, in_use: set[str]) -> None:
        self.script, self.rhythm, self.in_use = script, rhythm, in_use
        self.seed = script.sandbox.seed
        self._idle, self._waits = stream(self.seed, "idle"), stream(self.seed, "people", "letters")
        self._crowd: Iterator[Buyer] = iter(())
        self._too_new: list[Buyer] = []
        self.recent: deque[Buyer] = deque(maxlen=RECENT)
        self.named = 0

    def gather(self, count: int) -> None:
        """Draw so many persons, whose documents are not in use."""
        letters = self.script.end >= ALPHANUMERIC_SINCE_MS
        crowd = self.script.faker("people").crowd(count, self.in_use, letters=letters)
        self._crowd = _buyers(crowd, count, self.script.faker("people", "moves"))

    def _next(self, at: int) -> Buyer:
        """Who comes at an instant: companies whose CNPJ has letters wait until such are issued, then come singly."""
        if at >= ALPHANUMERIC_SINCE_MS and self._too_new and self._waits.random() < WAITED:
            return self._too_new.pop()
        for buyer in self._crowd:
            if at >= ALPHANUMERIC_SINCE_MS or buyer.customer["document"].isdigit():
                return buyer
            self._too_new.append(buyer)
        return self._too_new.pop()

    def newcomer(self, draft: Draft, rng: Random, metadata: str = "metadata_of_buyers") -> Buyer:
        """Create the next customer of those who were gathered."""
        buyer = self._next(draft.now)
        words = pick(rng, metadata).split()
        fields = buyer.customer | {"metadata": dict([words]) if words else {}}
        defaults = self.script.sandbox.rules.defaults["Customer"]
        resources.add(draft, "customers", new_customer(fields, defaults, iso(draft.now)) | {"id": buyer.id})
        if buyer.new_number is not None:
            share = self.rhythm.share(draft.now)
            since = max(draft.now + MINUTE, self.rhythm.at(share + (1 - share) * self._idle.random()))
            self.script.add(min(since, self.script.end), self.script.step, self._renumber, buyer)
        return buyer

    def returning(self, rng: Random, project: str) -> Buyer:
        """One of the recent buyers, in most cases one who has not joined the project."""
        for _ in range(12):
            buyer = rng.choices(self.recent)[0]
            if project not in buyer.joined:
                break
        return buyer

    def plan_others(self, count: int) -> None:
        """Plan those who sign up and do not buy anything yet."""
        for _ in range(count):
            at = self.rhythm.at(0.03 + 0.96 * self._idle.random())
            self.script.add(at, self.script.step, self.newcomer, self._idle, "metadata_of_others")

    def _renumber(self, draft: Draft, buyer: Buyer) -> None:
        """Give a customer the new mobile number; earlier orders keep the old one."""
        row = draft.open(draft.store.customers, buyer.id)
        assert row is not None  # nobody deletes one
        phones = row.public["phones"]
        phones = phones | {"mobile_phone": phones["mobile_phone"] | {"number": buyer.new_number}}
        changed = changed_customer(row.public, {"phones": phones}, iso(draft.now))
        resources.change(draft, draft.store.customers, row, changed)
        buyer.order_copy = buyer.order_copy | {"phones": flat_phones(phones)}


def _buyers(crowd: Iterator[Body], count: int, faker: Faker) -> Iterator[Buyer]:
    """The buyers of a crowd. The later they come, the fewer of them have another number already.

    Seldom all of them come: a function of the module, since a generator that is left over must not refer to the actors,
    or a cycle would keep the whole sandbox in memory.
    """
    rng = faker.random
    for place, person in enumerate(crowd):
        ident = uuid_text(rng.getrandbits(128))
        is_renumbered = rng.random() < RENUMBERED * (1 - place / count) and "mobile_phone" in person["phones"]
        yield Buyer(ident, person, faker.mobile_number() if is_renumbered else None)
