"""Random sequences of requests never find the server and a small model of it of two minds."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, run_state_machine_as_test

from ..support.live import FROZEN, Live, running
from .audit import audit, marks
from .bench import Bench, Tally
from .client import Client
from .model import Json
from .rules_catalogue import SHAPES, CatalogueRules, KeyRules, new_plan, new_project
from .rules_sales import OrderRules, TimeRules, place
from .rules_sales import pay as settle_payment

SEQUENCES = int(os.environ.get("MODEL_SEQUENCES", "200"))
STEPS = 30


class Machine(CatalogueRules, KeyRules, OrderRules, TimeRules, RuleBasedStateMachine):
    """One sequence: a fresh sandbox, a fresh model, thirty steps and a last look."""

    def __init__(self, client: Client, tally: Tally) -> None:
        """Both start empty."""
        super().__init__()
        self.taken = 0
        self.requests = client.requests
        self.bench = Bench(client, tally)

    @initialize(shape=st.sampled_from(SHAPES), paid=st.integers(0, 3))
    def open_shop(self, shape: Json, paid: int) -> None:
        """A shop that sells one plan, and nearly always has a first member: sequences must get deep."""
        self.taken = -1
        new_project(self.bench, "Clube", "active")
        new_plan(self.bench, self.bench.world.projects[0], "Mensal", 4990, shape)
        plan = self.bench.world.plans[0]
        if paid and plan.status == "active":
            order = place(self.bench, plan, self.bench_document(), "rosa@example.com", plan.methods[0], plan.amount)
            if order is not None:
                settle_payment(self.bench, order)

    @staticmethod
    def bench_document() -> str:
        """The first buyer's."""
        from .bench import DOCUMENTS

        return DOCUMENTS[0]

    @invariant()
    def figures_agree(self) -> None:
        """After every step the project that was touched counts what the model counts."""
        self.taken += 1
        project = self.bench.touched
        if project is not None and project in self.bench.world.projects:
            self.bench.compare_project(project)

    def teardown(self) -> None:
        """The last look, unless the sequence was broken off."""
        if sys.exc_info()[0] is not None:
            return
        audit(self.bench)
        tally = self.bench.tally
        tally.sequences += 1
        tally.steps += self.taken
        tally.reached.update(set(marks(self.bench)))


@pytest.fixture
def shop() -> Iterator[Live]:
    """A server of the test's own: what is random in it is then the same in every run."""
    with running(FROZEN) as server:
        yield server


def test_no_sequence_finds_server_and_model_of_two_minds(shop: Live, capsys: pytest.CaptureFixture[str]) -> None:
    """Two hundred sequences of thirty steps, each looked at after every step and as a whole at its end."""
    tally = Tally()
    client = Client(shop.port, "model")
    run_state_machine_as_test(
        lambda: Machine(client, tally),
        settings=settings(
            max_examples=SEQUENCES,
            stateful_step_count=STEPS,
            deadline=None,  # the first request of a run compiles what later ones reuse
            derandomize="MODEL_SEQUENCES" not in os.environ,  # the same sequences every time; a longer hunt is random
            database=None,
            suppress_health_check=list(HealthCheck),  # a sequence is thirty round trips: slow and large by intent
        ),
        _min_steps=STEPS,
    )
    tally.requests = client.requests
    client.close()
    with capsys.disabled():
        print(f"\n{tally.line()}")
    assert tally.sequences >= SEQUENCES
    assert tally.steps >= SEQUENCES * STEPS
