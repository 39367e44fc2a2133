"""One sequence of the property tests: a fresh sandbox, a fresh model, thirty steps that are looked
at one by one.
"""

import sys

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    run_state_machine_as_test,
)

from stub_server.server.sandboxes.making import Beginning
from stub_server.server.sandboxes.sandboxes import Sandboxes

from ..engine.state import refolded
from ..support.live import FROZEN, NOW, running
from ..support.receiver import receiving
from .audit import audit, marks
from .bench import DOCUMENTS, Bench, Tally
from .client import Client
from .model import Json, granted
from .moments import DAY, HOUR, parse
from .rules_catalogue import CatalogueRules, new_plan, new_project
from .rules_keys import KeyRules
from .rules_members import MemberRules
from .rules_sales import OrderRules, buyer, pay, place
from .rules_time import TimeRules, live_a_period

SANDBOX = "model"
STEPS = 30
CARD: Json = {"payment_methods": ["credit_card", "pix"]}
TRIAL: Json = {"interval": "week", "trial_period_days": 7}
STORIES: dict[str, Json | None] = {  # and the plan that each needs
    "lives on": None,
    "pays again": None,
    "pays again on trial": TRIAL,
    "pays again for a plan that has changed": None,
    "stands still": None,
    "stands still on trial": TRIAL,
    "card fails": CARD,
    "card never pays": CARD,
    "takes money back": None,
    "pays ahead": None,
    "pays ahead, then is paid back": None,
    "leaves": None,
    "leaves at once": None,
    "another pays late": None,
    "waits": None,
    "is disputed in its grace": {"payment_methods": ["pix"]},
}
STARTS = (
    *(NOW, "2026-12-31T14:32:05.123Z"),
    # in São Paulo, the last evening of the month before
    *("2027-02-01T01:30:00.000Z", "2027-03-01T01:30:00.000Z"),
)
OPENINGS: tuple[Json, ...] = (
    {},
    {"payment_methods": ["credit_card", "pix"]},
    {"interval": "day", "interval_count": 2, "payment_methods": ["pix", "boleto"]},
    {"interval": "week"},
    {"trial_period_days": 7},
    {"interval": "week", "trial_period_days": 10, "payment_methods": ["credit_card"]},
    {"payment_methods": ["boleto", "pix"]},
    {"interval": "month", "interval_count": 3, "payment_methods": ["credit_card", "pix"]},
    {"interval": "day"},
    {"interval": "year"},
    {"interval": "week", "max_subscribers": 2},
    {"max_subscribers": 1},
    {"billing_type": "one_time", "max_subscribers": 2},
)


class Machine(CatalogueRules, KeyRules, MemberRules, OrderRules, TimeRules, RuleBasedStateMachine):
    """One sequence: a fresh sandbox, a fresh model, thirty steps and a last look."""

    def __init__(self, client: Client, tally: Tally, listener: str, sandboxes: Sandboxes) -> None:
        """Both start empty; `listener` is the address of a receiver of webhooks, `sandboxes` are
        the server's.
        """
        super().__init__()
        self.sandboxes = sandboxes
        self.taken = 0
        self.listener = listener
        self.bench = Bench(client, tally)

    @initialize(
        shape=st.sampled_from(OPENINGS),
        start=st.sampled_from(STARTS),
        paid=st.sampled_from((True, True, True, True, False)),
        # Drawn from a wide range: of twelve values alone, a run that is derandomized may leave some
        # out.
        story=st.integers(0, 14_999).map(lambda number: tuple(STORIES)[number % len(STORIES)]),
    )
    def open_shop(self, shape: Json, start: str, paid: bool, story: str) -> None:
        """A shop that sells one plan and nearly always has a first member: sequences
        must get deep.
        """
        self.taken = -1
        shape = STORIES[story] or shape
        self.bench.advance(parse(start))
        new_project(self.bench, "Clube", "active")
        for project in (self.bench.world.projects[0], None):
            self.bench.listen(self.listener, project)
        new_plan(self.bench, self.bench.world.projects[0], "Mensal", 4990, shape)
        plan = self.bench.world.plans[0]
        if paid:
            order = place(self.bench, plan, buyer(DOCUMENTS[0]), plan.methods[0], plan.amount)
            assert order is not None
            pay(self.bench, order)
        if plan.limit is not None and story != "lives on":
            self.fill_seats(number=0, documents=[*DOCUMENTS[1:4]], pays=False)
        if paid and plan.recurring:
            self._tell(story)

    def _tell(self, story: str) -> None:
        """What the first member meets first: each of the situations that random steps
        seldom come by.
        """
        if story == "lives on":
            live_a_period(self.bench, self.bench.world.subscriptions, 0, late=False)
        elif story.startswith("pays again"):
            if "changed" in story:
                for change in ({"amount": 59.9}, {"status": "inactive"}):
                    self.update_plan(number=0, change=change)
            self.pay_once_more(number=0, state="active", method=0, times=1)
        elif story.startswith("stands still"):
            self.stand_still(number=0, before=-HOUR, over=8 * DAY, meanwhile=None, then="pay")
        elif story == "another pays late":
            self.pay_late(
                number=0, document=DOCUMENTS[1], method="boleto", wait=30 * DAY, then="archive"
            )
        elif story == "is disputed in its grace":
            self.dispute_over_an_end(
                number=0, before=HOUR, over=2 * DAY, meanwhile=None, won=True, part=False
            )
        elif story == "takes money back":
            self.change_address(number=0, address="refund_after_payment", rename=False, lives=True)
        elif story.startswith("card"):
            address = "fill_never" if "never" in story else "fail_immediately"
            self.change_address(number=0, address=address, rename=True, lives=True)
        elif story.startswith("pays ahead"):
            self.renew_early(number=0, times=2, beside=0)
            if "back" in story:
                self.return_a_period(number=0, which="older", parts=False)
                self.return_a_period(number=0, which="future", parts=True)
        elif story.startswith("leaves"):
            self.leave(
                number=0,
                verb="cancel" if "once" in story else "later",
                late=False,
                stays=None if "once" in story else "resume",
            )

    @invariant()
    def figures_agree(self) -> None:
        """After every step the project that was touched counts what the model counts."""
        self.taken += 1
        self.bench.mark(*marks(self.bench.world))
        project = self.bench.touched
        if project is not None and project in self.bench.world.projects:
            self.bench.compare_project(project)

    def teardown(self) -> None:
        """The last look, unless the sequence was broken off."""
        if sys.exc_info()[0] is not None:
            return
        audit(self.bench)
        self._refold()
        tally = self.bench.tally
        tally.sequences += 1
        tally.steps += self.taken
        tally.full += self.taken >= STEPS
        tally.reached.update(self.bench.marks)

    def _refold(self) -> None:
        """The sandbox is its origin and its steps."""
        self.bench.client.ask("POST", "/_sandbox/webhooks/drain").hold(granted())
        world = self.sandboxes.find(SANDBOX)
        assert world is not None
        refolded(
            world,
            self.sandboxes.factory.make(
                SANDBOX, world.origin.generation, Beginning("empty", world.origin.seed)
            ),
        )


def play(sequences: int, number: int | None = None, *, shrinks: bool = True) -> Tally:
    """Play so many sequences on a server of their own, so that what is random in it is the same in
    every run.

    They are the same every time; others by the seed `number`. `shrinks` looks for the smallest that
    fails. Raises the disagreement that is found.
    """
    tally = Tally()
    # what webhooks bring is taken: none is ever disabled
    with running(FROZEN) as shop, receiving() as listener:
        client = Client(shop.port, SANDBOX)

        class Bound(Machine):
            def __init__(self) -> None:
                super().__init__(client, tally, listener.url, shop.app.sandboxes)

        if number is not None:
            seed(number)(Bound)
        try:
            run_state_machine_as_test(
                Bound,
                settings=settings(
                    max_examples=sequences * 7 // 4,  # Hypothesis ends up to one in three early
                    stateful_step_count=STEPS + 1,  # the opening counts as one
                    deadline=None,  # the first request of a run compiles what later ones reuse
                    derandomize=number is None,
                    database=None,
                    phases=tuple(Phase) if shrinks else (Phase.generate,),
                    report_multiple_bugs=shrinks,
                    # thirty round trips: slow and large by intent
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            tally.requests = client.requests
            client.close()
    return tally
