"""A sandbox on its own: its clock may pause on the way, and a fork is independent of what it was forked from."""

import pytest

from stub_server import create_app
from stub_server.engine import scheduler
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.scheduler import Fired, do_due_at_once, do_some_due, jobs_until, move_clock
from stub_server.engine.step import Cause
from stub_server.kernel.clock import DAY, ClockState
from stub_server.kernel.ids import NextIds

from ..support.live import FROZEN
from ..support.worlds import advance, drafted

CAUSE = Cause("control", "", "test")


@pytest.fixture
def world() -> Sandbox:
    return create_app(FROZEN).sandboxes.default


def done(jobs: list[Fired]) -> list[tuple[int, str, str]]:
    """What was done when, without what it raised."""
    return [(job.at, job.job, job.subject) for job in jobs]


@pytest.mark.check
def test_jobs_that_are_done_with_pauses_are_the_same_as_at_once(world: Sandbox) -> None:
    """Whoever looks in a pause, or takes a copy, sees a sandbox at an instant on the way."""
    end, whole, fired, seen = world.clock.now + 60 * DAY, world.fork("whole"), list[Fired](), list[int]()
    expected = advance(whole, end)
    assert len(expected) > 20
    for _ in jobs_until(world, end, fired):
        seen.append(world.fork("pause").clock.now)
    move_clock(world, end, CAUSE)
    assert sorted(seen) == seen
    assert done(expected) == done(fired)
    assert (whole.store.counts(), whole.log.number) == (world.store.counts(), world.log.number)


def run_to(world: Sandbox, instant: int) -> None:
    """Have a frozen clock run by a wall that shows an instant."""
    world.clock.wall = lambda: instant
    world.clock.set(ClockState(world.clock.now, 0, False))


@pytest.mark.check
def test_a_running_clock_waits_for_the_jobs_of_the_past(world: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request after a long night finds more due than is done at once, and the clock stands until the rest is."""
    monkeypatch.setattr(scheduler, "LITTLE", 0)
    twin = world.fork("night")
    run_to(twin, world.clock.now + 60 * DAY)
    assert world.clock.now + 60 * DAY == do_some_due(twin)
    assert twin.clock.now < world.clock.now + 60 * DAY
    do_due_at_once(twin)
    do_due_at_once(twin)
    assert world.clock.now + 60 * DAY == twin.clock.now
    due = twin.timers.next_due()
    assert due is None or due > twin.clock.now


def test_a_request_after_a_job_has_the_time_of_the_request(world: Sandbox) -> None:
    """And not that of the job which was done before it: whatever else is to come is still to come."""
    twin = world.fork("morning")
    due = twin.timers.next_due()
    assert due is not None
    run_to(twin, due + 1)
    do_due_at_once(twin)
    assert due + 1 == twin.clock.now
    later = twin.timers.next_due()
    assert later is not None
    assert later > twin.clock.now


@pytest.mark.check
def test_a_fork_is_independent(world: Sandbox) -> None:
    """What happens in one of the two worlds did not happen in the other."""
    twin = world.fork("twin")
    before = world.store.counts(), len(world.events), NextIds(world.ids).uuid()
    assert before[2] == NextIds(twin.ids).uuid()
    row = next(twin.store.customers.all_rows())
    draft = drafted(twin)
    draft.emit_change(
        twin.store.customers, draft.update(twin.store.customers, row, row.public | {"name": "Outra"}), "updated"
    )
    draft.record()
    advance(twin, twin.clock.now + 90 * DAY)
    assert before == (world.store.counts(), len(world.events), NextIds(world.ids).uuid())
    assert world.store.customers.open(row.id) == row
    assert world.log.number == 0 < twin.log.number
