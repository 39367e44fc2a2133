"""Earlier states of a sandbox: which step is asked for, its state on a copy, and the step that goes back to it.

An earlier state is made on a copy: the log says which version each record had. A step goes back to a copy, be it that
or a snapshot, by what the sandbox and the copy do not share; it can be undone again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import islice
from operator import eq
from typing import TypeAlias

from ..core.clock import iso
from ..core.ends import ends_of
from ..core.problem import Conflict
from ..core.record import Record
from ..core.slices import at_once
from .bounded import Log
from .sandbox import Sandbox
from .scheduler import check_not_advancing
from .step import Cause, Change, Part, Restored, Step, Used
from .tables.memory import Store

ROUNDS = 3  # of comparing with pauses, in which steps may be recorded; one more has none
COMPARED = 512  # records between two pauses, where each is only compared
Keep: TypeAlias = Callable[[Sandbox, Sandbox], None]
"""Changes an earlier state, the first argument, before a sandbox goes back to it."""


# -- which step


def not_stored(message: str, field: str, where: str | None = None) -> Conflict:
    """409 for a state that is not available; `field` is a member of the body unless `where` says else, or a header."""
    where = where or ("header" if field.startswith("X-") else "body")
    return Conflict.at(field, message, "step_not_kept", where=where)


def check_kept(log: Log, number: int, field: str = "step") -> None:
    """Check that the state after a step is available. Raises Conflict."""
    if number > log.number:
        raise not_stored(f"The newest step of this sandbox is {log.number}.", field)
    if number < log.oldest - 1:
        raise not_stored(f"Step {number} is no longer stored. {_oldest(log)}", field)


def _oldest(log: Log) -> str:
    return f"The oldest state available is the one after step {log.oldest - 1}."


def step_at(sandbox: Sandbox, instant: int, field: str) -> int:
    """The last step at an instant (ms) or before. Raises Conflict for one in the future or no longer stored."""
    log, now = sandbox.log, sandbox.clock.now
    if instant > now:
        raise not_stored(f"{iso(instant)} has not come yet: the clock of this sandbox shows {iso(now)}.", field)
    earliest = sandbox.recorded_clock.now
    for step in reversed(log):
        if step.at <= instant:
            return step.number
        earliest = step.clock_before.now
    if earliest > instant:
        message = f"The state of {iso(instant)} is no longer stored. {_oldest(log)} Its time is {iso(earliest)}."
        raise not_stored(message, field)
    return log.oldest - 1


def step_before(sandbox: Sandbox, request: str, field: str) -> int:
    """The step before the first one of a request; of one without steps, the newest step when it came.

    Raises Conflict where neither the journal nor the log has the request, or that step is no longer stored.
    """
    trace = sandbox.journal.find(request)
    if trace is not None:
        check_kept(sandbox.log, trace.before, field)
        return trace.before
    for step in sandbox.log:
        if step.cause.id == request and step.cause.kind in ("request", "control"):
            return step.number - 1
    raise not_stored(f"Request {request} is not stored. {_oldest(sandbox.log)}", field)


# -- the state after it, on a copy


def state_at(sandbox: Sandbox, number: int, name: str) -> Generator[None, None, Sandbox]:
    """A copy of a sandbox as it was after a step, under another name, with pauses. A running clock runs on from there.

    The sandbox may change meanwhile. Raises Conflict for a step that is no longer stored.
    """
    log = sandbox.log
    check_kept(log, number)
    twin = sandbox.fork(name)
    for store in twin.stores.values():
        store.forget_unrecorded()
    for step in list(islice(reversed(log), log.number - number)):
        before = None if step.restored is None else step.restored.merchants_before
        yield from twin.change([part.mirrored for part in step.parts], before)
        twin.unfold_rest(step)
        yield
    twin.log = twin.log.fresh(number)
    twin.recorded_clock = twin.clock.again(twin.recorded_clock)
    twin.clock.set(twin.recorded_clock)
    return twin


# -- back to it


def rewind(
    sandbox: Sandbox, number: int, cause: Cause, keep: Keep, instant: int | None = None
) -> Generator[None, None, tuple[Step, int]]:
    """Restore the state after a step, with the clock at an instant of it; the step, and how many steps it undoes.

    `keep` gives the earlier state what does not go back. Steps that are recorded meanwhile are undone too. Raises
    Conflict.
    """
    then = yield from state_at(sandbox, number, sandbox.name)
    step = yield from _record(sandbox, then, cause, keep, instant)
    return step, step.number - 1 - number


def restore(sandbox: Sandbox, snapshot: Sandbox, cause: Cause, keep: Keep) -> Generator[None, None, Step]:
    """Restore the state of an earlier copy of a sandbox, which is not changed. Raises Conflict.

    `keep` gives the earlier state what does not go back.
    """
    then = snapshot.fork(sandbox.name)
    for store in then.stores.values():
        store.unrecorded.clear()
    return (yield from _record(sandbox, then, cause, keep, None))


def _record(
    sandbox: Sandbox, then: Sandbox, cause: Cause, keep: Keep, instant: int | None
) -> Generator[None, None, Step]:
    """Record the step that goes from the sandbox, as it is by now, to the earlier state of a copy."""
    for _ in range(ROUNDS):
        keep(then, sandbox)
        parts, number = yield from _between(sandbox, then)
        if number == sandbox.log.number:
            break
    else:
        keep(then, sandbox)
        parts, _ = at_once(_between(sandbox, then))
    check_not_advancing(sandbox)
    if sandbox.is_gone:
        raise not_stored("The sandbox was reset or deleted meanwhile, and its log began again.", "to_step")
    step = _step(sandbox, then, parts, cause, instant)
    sandbox.take(step, None, then)
    return step


def _between(sandbox: Sandbox, then: Sandbox) -> Generator[None, None, tuple[tuple[Part, ...], int]]:
    """The changes from a sandbox after its newest step to an earlier state, with pauses; and that step."""
    now, parts = sandbox.fork(sandbox.name), []
    for store in now.stores.values():
        store.forget_unrecorded()
    for ident in dict.fromkeys((*now.stores, *then.stores)):
        here, there = now.stores.get(ident), then.stores.get(ident)
        store = here or then.stores[ident]
        changes: list[Change] = []
        for name in store.tables:
            mine, theirs = _rows(here, name), _rows(there, name)
            if mine is theirs:
                continue
            changed = [key for key, record in mine.items() if theirs.get(key) is not record]  # 10 ms for 100,000
            yield
            changed += [key for key in theirs if key not in mine]
            yield
            for count, key in enumerate(changed, 1):
                changes.append(Change(name, mine.get(key), theirs.get(key)))
                if not count % COMPARED:
                    yield
        was, is_ = here.usage if here else {}, there.usage if there else {}
        used = [Used(key, is_.get(key), was.get(key)) for key in {**was, **is_} if was.get(key) != is_.get(key)]
        if here is None or there is None or changes or used:
            changes.sort(key=Change.deletes)
            parts.append(Part(store.merchant, here is None, there is None, tuple(changes), tuple(used)))
    return tuple(parts), now.log.number


def _rows(store: Store | None, name: str) -> dict[int, Record]:
    return {} if store is None else store.tables[name].rows


def _step(sandbox: Sandbox, then: Sandbox, parts: tuple[Part, ...], cause: Cause, instant: int | None) -> Step:
    """The step itself. Ids and numbers of timers continue, so that none is used twice."""
    clock = sandbox.clock.again(then.clock.at(then.recorded_clock.now if instant is None else instant))
    events = ends_of(list(sandbox.events), list(then.events))
    replies = ends_of(list(sandbox.replies.items()), list(then.replies.items()), eq)
    coming, going = then.timers.beyond(sandbox.timers), sandbox.timers.beyond(then.timers)
    changed = then.settings != sandbox.settings
    return Step(
        number=sandbox.log.number + 1,
        at=clock.now,
        cause=cause,
        merchant=sandbox.store.merchant,
        clock=clock,
        clock_before=sandbox.recorded_clock,
        position=sandbox.ids.position,
        position_before=sandbox.ids.position,
        events_before=sandbox.events.raised,
        timers_before=sandbox.timers.last,
        timers_set=coming,
        timers_fired=going,
        settings=then.settings if changed else None,
        settings_before=sandbox.settings if changed else None,
        restored=Restored(parts, tuple(sandbox.stores), tuple(then.stores), events, then.events.raised, replies),
    )
