"""The customers of a seeded year: who signs up when, and who has another telephone since."""

from random import Random

from ..core.clock import MINUTE, iso
from ..core.ids import uuid_text
from ..core.record import Body
from ..domain.customers import as_buyer, changed_customer, new_customer
from ..engine import resources
from ..engine.draft import Draft
from .people import ALPHANUMERIC_SINCE_MS
from .provider import stream
from .rhythm import Rhythm
from .script import Script
from .tables import pick

RENUMBERED = 0.15  # of the first customers, and ever fewer of the later ones: they have a new mobile number
PASSED_OVER = 1.2  # so many persons are drawn for each who comes: companies with letters in a CNPJ come since July 2026


class Buyers:
    """Creates customers. `in_use` are the documents of those whom the scenario names, `named` is how many these are.

    People follow from the seed and their place in the crowd: they are the same whatever the time.
    """

    def __init__(self, script: Script, rhythm: Rhythm, in_use: set[str]) -> None:
        self.script, self.rhythm, self.in_use = script, rhythm, in_use
        self._idle, self._moves = stream(script.sandbox.seed, "idle"), script.faker("people", "moves")
        self._ids: dict[int, str] = {}
        self.named, self._expected, self._come = 0, 0, 0

    def gather(self, count: int) -> None:
        """Draw so many persons, whose documents are not in use."""
        letters = self.script.end >= ALPHANUMERIC_SINCE_MS
        drawn = int(count * PASSED_OVER) + 20
        self._expected = count
        self._crowd = self.script.faker("people").crowd(drawn, self.in_use, letters=letters)

    def buyer(self, draft: Draft, number: int, rng: Random) -> tuple[str, Body]:
        """The id of the buyer of a number, and the customer as an order has it. Who comes first signs up."""
        if number not in self._ids:
            self._ids[number] = self.sign_up(draft, rng)
        ident = self._ids[number]
        row = draft.get(draft.store.customers, ident)
        return ident, as_buyer(row.public)

    def sign_up(self, draft: Draft, rng: Random, metadata: str = "metadata_of_buyers") -> str:
        """Create the next customer of those who were gathered; returns the id."""
        person = next(
            person for person in self._crowd if person["document"].isdigit() or draft.now >= ALPHANUMERIC_SINCE_MS
        )
        # Drawn for everybody: people are the same whatever the time.
        ident, number = uuid_text(self._moves.random.getrandbits(128)), self._moves.mobile_number()
        is_renumbered = self._moves.random.random() < RENUMBERED * (1 - self._come / self._expected)
        self._come += 1
        words = pick(rng, "habits", metadata).split()
        fields = person | {"metadata": dict([words]) if words else {}}
        defaults = self.script.sandbox.rules.defaults["Customer"]
        resources.add(draft, "customers", new_customer(fields, defaults, iso(draft.now)) | {"id": ident})
        if is_renumbered and "mobile_phone" in person["phones"]:
            since = self.rhythm.instant(self._idle, draft.now + MINUTE, self.script.end)
            self.script.add(since, self.script.step, self._renumber, ident, number)
        return ident

    def plan_others(self, count: int) -> None:
        """Plan those who sign up and do not buy anything yet."""
        start, end = self.rhythm.start, self.rhythm.end
        for _ in range(count):
            at = self.rhythm.instant(self._idle, start, end)
            self.script.add(at, self.script.step, self.sign_up, self._idle, "metadata_of_others")

    def _renumber(self, draft: Draft, ident: str, number: str) -> None:
        """Give a customer a new mobile number; earlier orders keep the old one."""
        row = draft.get(draft.store.customers, ident)
        phones = row.public["phones"]
        phones = phones | {"mobile_phone": phones["mobile_phone"] | {"number": number}}
        changed = changed_customer(row.public, {"phones": phones}, iso(draft.now))
        resources.change(draft, draft.store.customers, row, changed)
