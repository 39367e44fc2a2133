"""A sandbox on its own: one step of its clock is bounded, and a fork goes its own way."""

import pytest

from stub_server import create_app, sandbox
from stub_server.kernel.clock import DAY
from stub_server.kernel.record import Change
from stub_server.sandbox import Sandbox

from ..support.live import FROZEN


@pytest.fixture
def world() -> Sandbox:
    return create_app(FROZEN).sandboxes.default


def test_a_step_that_would_take_too_long_stops_on_the_way(world: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next one goes on from there, until everything is done: nobody waits for ten years of renewals at once."""
    whole = world.fork("whole")
    expected = [(job.at, job.job, job.subject) for job in whole.advance(world.clock.now + 60 * DAY)]
    assert len(expected) > 20
    monkeypatch.setattr(sandbox, "MOST_JOBS", 10)
    end, steps, fired = world.clock.now + 60 * DAY, 0, []
    while world.clock.now < end:
        fired += [(job.at, job.job, job.subject) for job in world.advance(end)]
        steps += 1
    assert steps > 2
    assert expected == fired
    assert whole.counts() == world.counts()


def test_a_running_clock_waits_for_the_jobs_of_the_past(world: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request after a long night does a part of what fell due, and time stands still for the rest."""
    monkeypatch.setattr(sandbox, "MOST_JOBS", 10)
    twin = world.fork("night")
    twin.clock._wall = lambda: world.clock.now + 60 * DAY
    twin.clock._offset, twin.clock.frozen = 0, False
    seen = [twin.tick() for _ in range(3)]
    assert sorted(seen) == seen
    assert seen[-1] < world.clock.now + 60 * DAY
    while twin.tick() < world.clock.now + 60 * DAY:
        pass
    due = twin.timers.next_due()
    assert due is None or due > twin.clock.now


def test_a_fork_goes_its_own_way(world: Sandbox) -> None:
    """What happens in one of the two worlds did not happen in the other."""
    twin = world.fork("twin")
    before = world.counts(), len(world.events), world.ids.copy("x").uuid()
    row = next(twin.store.customers.all_rows())
    change = Change().update("customers", row, row.public | {"name": "Outra"})
    twin.apply(twin.store, change.emit("customer.updated", "customers", row.id))
    twin.advance(twin.clock.now + 90 * DAY)
    assert before == (world.counts(), len(world.events), world.ids.copy("x").uuid())
    assert world.store.customers.open(row.id) == row
    assert not world.touched
    assert twin.touched
