"""A sandbox on its own: one run of its clock is bounded, and a fork is independent of what it was forked from."""

import pytest

from stub_server import create_app
from stub_server.engine import scheduler
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.scheduler import Fired, advance, tick
from stub_server.engine.step import Cause
from stub_server.kernel.clock import DAY
from stub_server.kernel.ids import Cutter

from ..support.live import FROZEN
from ..support.worlds import drafted

CAUSE = Cause("control", "", "test")


@pytest.fixture
def world() -> Sandbox:
    return create_app(FROZEN).sandboxes.default


def done(jobs: list[Fired]) -> list[tuple[int, str, str]]:
    """What was done when, without what it raised."""
    return [(job.at, job.job, job.subject) for job in jobs]


def test_a_run_that_would_take_too_long_stops_on_the_way(world: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next one goes on from there, until everything is done: nobody waits for ten years of renewals at once."""
    whole = world.fork("whole")
    expected = done(advance(whole, world.clock.now + 60 * DAY, CAUSE))
    assert len(expected) > 20
    monkeypatch.setattr(scheduler, "MOST_JOBS", 10)
    end, runs, fired = world.clock.now + 60 * DAY, 0, []
    while world.clock.now < end:
        fired += done(advance(world, end, CAUSE))
        runs += 1
    assert runs > 2
    assert expected == fired
    assert whole.counts() == world.counts()


def test_a_running_clock_waits_for_the_jobs_of_the_past(world: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request after a long night does a part of what fell due, and time stands still for the rest."""
    monkeypatch.setattr(scheduler, "MOST_JOBS", 10)
    twin = world.fork("night")
    twin.clock._wall = lambda: world.clock.now + 60 * DAY
    twin.clock._offset, twin.clock.frozen = 0, False
    seen = [tick(twin) for _ in range(3)]
    assert sorted(seen) == seen
    assert seen[-1] < world.clock.now + 60 * DAY
    while tick(twin) < world.clock.now + 60 * DAY:
        pass
    due = twin.timers.next_due()
    assert due is None or due > twin.clock.now


def test_a_request_after_a_job_has_the_time_of_the_request(world: Sandbox) -> None:
    """And not that of the job which was done before it: whatever else is to come is still to come."""
    twin = world.fork("morning")
    due = twin.timers.next_due()
    assert due is not None
    twin.clock._wall = lambda: due + 1
    twin.clock._offset, twin.clock.frozen = 0, False
    assert due + 1 == tick(twin) == twin.clock.now
    later = twin.timers.next_due()
    assert later is not None
    assert later > twin.clock.now


def test_a_fork_is_independent(world: Sandbox) -> None:
    """What happens in one of the two worlds did not happen in the other."""
    twin = world.fork("twin")
    before = world.counts(), len(world.events), Cutter(world.ids).uuid()
    assert before[2] == Cutter(twin.ids).uuid()
    row = next(twin.store.customers.all_rows())
    draft = drafted(twin)
    draft.emit_change(
        twin.store.customers, draft.update(twin.store.customers, row, row.public | {"name": "Outra"}), "updated"
    )
    draft.record()
    advance(twin, twin.clock.now + 90 * DAY, CAUSE)
    assert before == (world.counts(), len(world.events), Cutter(world.ids).uuid())
    assert world.store.customers.open(row.id) == row
    assert not world.touched
    assert twin.touched
