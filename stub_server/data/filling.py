"""Fills a sandbox with a scenario: the same scenario, seed and time give the same data on
every machine.
"""

import gc
from collections.abc import Iterator
from contextlib import closing, contextmanager

from ..core.clock import DAY, HOUR, iso
from ..core.ids import named_uuid
from ..domain.documents import checks_digits
from ..engine.sandbox import Sandbox
from ..engine.step import SandboxSettings
from ..engine.tables import store as stores
from ..engine.tables.store import Store
from .crowd import Crowd
from .merchant import plan_keys, plan_projects, plan_webhooks
from .past import Past
from .provider import stream
from .purchases import Offer
from .records import plan_records
from .rhythm import office_hour
from .scenario import Scenario, parse_scenario, read_scenario

MERCHANT_ID, USER_ID = named_uuid("merchant", "home"), named_uuid("user", "home")
# Sandboxes are kept as they were filled, so that the next one like them is a copy: so many, of so
# many records in all.
MOST_COPIES, MOST_KEPT = 8, 200_000
SHARED_FOR = HOUR  # while the clock runs, a sandbox that was filled so long ago is still copied
LEAD_DAYS = 40  # between the merchant's beginning and the first month of sales
Key = tuple[str, str, int, bytes, str]
"""What decides the data of a sandbox, apart from its now: scenario and its text, seed, secret and
base URL.
"""


class Seeding:
    """Fills sandboxes. `copies` are sandboxes as they were filled."""

    def __init__(self) -> None:
        self.copies: dict[Key, Sandbox] = {}

    def fill(self, sandbox: Sandbox) -> None:
        """Fill an empty sandbox with its scenario, up to its clock's now. Raises UnusableInput."""
        if self.copy(sandbox):
            return
        key = self._key(sandbox)
        checks_digits.set(sandbox.settings.check_digits)
        with _without_collector():
            self._fill(parse_scenario(sandbox.origin.scenario, key[1]), sandbox)
        self.copies.pop(key, None)
        if _records(sandbox) > MOST_KEPT:
            return
        self.copies[key] = sandbox.fork("pristine")
        while len(self.copies) > MOST_COPIES or _records(*self.copies.values()) > MOST_KEPT:
            del self.copies[next(iter(self.copies))]  # the one that was filled first

    def copy(self, sandbox: Sandbox) -> bool:
        """Fill an empty sandbox with a copy of one that was filled alike, if there is one.

        Raises UnusableInput.
        """
        kept = self.copies.get(self._key(sandbox))
        longest = 0 if sandbox.clock.frozen else SHARED_FOR
        if kept is None or not 0 <= sandbox.clock.now - kept.clock.now <= longest:
            return False
        twin = kept.fork(sandbox.name)
        sandbox.timers, sandbox.stores, sandbox.events = twin.timers, twin.stores, twin.events
        own, other = sandbox.origin, twin.origin
        own.home, own.sample, own.personas = other.home, other.sample, other.personas
        return True

    def _key(self, sandbox: Sandbox) -> Key:
        origin, rules = sandbox.origin, sandbox.rules
        return (
            origin.scenario,
            read_scenario(origin.scenario),
            origin.seed,
            rules.secret,
            rules.base_url,
        )

    def _fill(self, scenario: Scenario, sandbox: Sandbox) -> None:
        seed, now = sandbox.origin.seed, sandbox.clock.now
        start = now - round(scenario.root.get("months", 12) * 365 / 12) * DAY
        begun = office_hour(stream(seed, "merchant"), start - LEAD_DAYS * DAY)
        sandbox.origin.home = MERCHANT_ID
        named = scenario.root.value["merchant"]
        owner = stores.Merchant(MERCHANT_ID, USER_ID, named["name"], named["city"], iso(begun))
        store = sandbox.stores[MERCHANT_ID] = Store(owner, sandbox.rules.layout)
        past = Past(sandbox, store, scenario, begun, start)
        # no autopay, and the standard schedule
        settings, sandbox.settings = sandbox.settings, SandboxSettings()
        sandbox.origin.raises_events = False  # nobody listens before the first webhook
        with closing(past), sandbox.seeding_past(begun):
            plan_projects(past)
            plan_webhooks(past)
            plan_keys(past)
            plan_records(past)
            Crowd(past).plan()
            past.run()
        sandbox.settings, sandbox.origin.raises_events = settings, True
        sandbox.origin.sample = _sample(store, past.offers, now)


def _records(*sandboxes: Sandbox) -> int:
    return sum(len(table) for sandbox in sandboxes for table in sandbox.tables())


@contextmanager
def _without_collector() -> Iterator[None]:
    """Without the garbage collector, which would walk the growing sandbox again and again
    and find nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # What was created stays: this moves it to the oldest generation, without a first look
            # through it.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def _sample(store: Store, offers: list[Offer], now: int) -> dict[str, str]:
    """Ids to try operations with: of what sells best, and of the newest PIX order that
    waits for payment.
    """
    sample: dict[str, str] = {}
    for offer in sorted(offers, key=lambda offer: offer.share):
        if offer.is_sold_at(now):
            sample |= {"projectId": offer.project["id"], "planId": offer.plan["id"]}
    first = next(store.customers.all_rows(), None)
    if first is not None:
        sample["customerId"] = first.id
    for row in store.orders.rows_of("status", "pending"):
        if row["paymentMethod"] == "pix" and not row["renewal"]:
            sample |= {"orderId": row.id, "customerId": row["customerId"]}
    return sample
