"""Has a world be in an earlier state: one step, whatever lies between, so that it can be undone like any other."""

from __future__ import annotations

from collections.abc import Generator
from operator import eq

from ..kernel.ends import ends_of, size_of
from ..kernel.slices import at_once
from .difference import Difference, between
from .past import Reached, reach, unkept
from .sandbox import Sandbox
from .scheduler import check_standing
from .step import OVERHEAD, OVERHEAD_EACH, Cause, Part, Restored, Step

ROUNDS = 3  # in which what happens meanwhile is taken in with pauses; the last one has none


def rewind(
    world: Sandbox, number: int, cause: Cause, instant: int | None = None
) -> Generator[None, None, tuple[Step, int]]:
    """Have the state after a step, its clock at an instant of it; the step, and how many steps that undid.

    The world goes on meanwhile, and what happens then is undone too. Raises Conflict.
    """
    reached = yield from reach(world, number, world.name)
    step = yield from _record(world, reached, cause, instant)
    return step, step.number - 1 - number


def restore(world: Sandbox, pinned: Sandbox, cause: Cause) -> Generator[None, None, Step]:
    """Have the state of a world that was copied from this one earlier, which is kept as it is. Raises Conflict."""
    here, there = world.fork(world.name), pinned.fork(world.name)
    for store in here.stores.values():
        store.forget_unrecorded()
    for store in there.stores.values():
        store.unrecorded.clear()
    found = yield from between(here, there)
    return (yield from _record(world, Reached(there, found), cause, None))


def _record(world: Sandbox, reached: Reached, cause: Cause, instant: int | None) -> Generator[None, None, Step]:
    """Take the step that goes from the world as it is by now to a state that was reached."""
    for _ in range(ROUNDS):
        yield from _catch_up(world, reached.difference)
        parts, size = yield from reached.difference.parts(world.stores)
        if reached.difference.number == world.log.number:
            break
    else:
        at_once(_catch_up(world, reached.difference))
        parts, size = at_once(reached.difference.parts(world.stores))
    check_standing(world)
    if world.is_gone:
        raise unkept("The sandbox was reset or deleted meanwhile: its log has begun anew.", "to_step")
    step = _step(world, reached.world, parts, size, cause, instant)
    world.take(step, None, reached.world)
    return step


def _catch_up(world: Sandbox, difference: Difference) -> Generator[None, None, None]:
    if not (yield from difference.ahead(world.log)):
        oldest = world.log.oldest - 1
        message = f"More happened meanwhile than is kept; the oldest state that is is that after step {oldest}."
        raise unkept(message, "to_step")


def _step(world: Sandbox, then: Sandbox, parts: tuple[Part, ...], size: int, cause: Cause, instant: int | None) -> Step:
    """The step itself. Positions of ids, and numbers of timers, go on from where they are: nothing is named twice."""
    clock = world.clock.again(then.clock.at(then.recorded_clock.now if instant is None else instant))
    events = ends_of(list(world.events), list(then.events))
    replies = ends_of(list(world.replies.items()), list(then.replies.items()), eq)
    coming, going = then.timers.beyond(world.timers), world.timers.beyond(then.timers)
    size += OVERHEAD + OVERHEAD_EACH * (len(coming) + len(going)) + size_of(events, lambda event: event.size)
    size += size_of(replies, lambda pair: len(pair[1].body))
    return Step(
        number=world.log.number + 1,
        at=clock.now,
        cause=cause,
        merchant=world.store.merchant,
        opens_store=False,
        puts=(),
        drops=(),
        events=(),
        events_before=world.events.raised,
        forgotten_events=(),
        timers_set=coming,
        timers_before=world.timers.last,
        timers_taken=going,
        used=(),
        saved=None,
        forgotten_replies=(),
        clock=clock,
        clock_before=world.recorded_clock,
        position=world.ids.position,
        position_before=world.ids.position,
        size=size,
        settings=None if then.settings == world.settings else then.settings,
        settings_before=None if then.settings == world.settings else world.settings,
        restored=Restored(
            parts, tuple(world.stores), tuple(then.stores), events, world.events.raised, then.events.raised, replies
        ),
    )
