"""Earlier states of a sandbox: which step is asked for, its state on a copy, and the step that goes
back to it.

An earlier state is made on a copy: the log says which version each record had. A step goes back to
a copy, be it that or a snapshot, by what the sandbox and the copy do not share; it can be undone
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from ..core.clock import iso
from ..core.problem import Conflict
from ..core.slices import Sliced
from .kept import MOST_BYTES, Log
from .lists import ends_of
from .sandbox import Sandbox
from .scheduler import check_not_advancing
from .step import Cause, Change, Part, Standing, Step, Used
from .tables.store import Store

Touched = dict[tuple[str, str], set[int]]
"""The keys of records, by merchant and table."""


# -- which step


def not_stored(message: str, field: str, where: str | None = None) -> Conflict:
    """409 for a state that is not available; `field` is a member of the body unless `where` says
    else, or a header.
    """
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
    """The last step at an instant (ms) or before.

    Raises Conflict for one in the future or no longer stored.
    """
    log = sandbox.log
    now = sandbox.clock.now
    if instant > now:
        raise not_stored(
            f"{iso(instant)} has not come yet: the clock of this sandbox shows {iso(now)}.", field
        )
    earliest = sandbox.clock.recorded.now
    for step in reversed(log):
        if step.at <= instant:
            return step.number
        earliest = step.before.clock.now
    if earliest > instant:
        raise not_stored(
            f"The state of {iso(instant)} is no longer stored. {_oldest(log)} Its time is"
            f" {iso(earliest)}.",
            field,
        )
    return log.oldest - 1


def step_before(sandbox: Sandbox, request: str) -> int:
    """The step before the first one of a request; of one without steps, the newest step when it
    came.

    Raises Conflict where neither the journal nor the log has the request, or that step is no longer
    stored.
    """
    trace = sandbox.journal.find(request)
    if trace is not None:
        check_kept(sandbox.log, trace.before, "to_request")
        return trace.before
    for step in sandbox.log:
        if step.cause.id == request and step.cause.kind in ("request", "control"):
            return step.number - 1
    raise not_stored(f"Request {request} is not stored. {_oldest(sandbox.log)}", "to_request")


# -- the state after it, on a copy


def state_at(sandbox: Sandbox, number: int, name: str) -> Sliced[Sandbox]:
    """A copy of a sandbox as it was after a step, under another name, with pauses. A running clock
    runs on from there.

    The sandbox may change meanwhile. Raises Conflict for a step that is no longer stored.
    """
    log = sandbox.log
    check_kept(log, number)
    twin = sandbox.fork(name)
    for store in twin.stores.values():
        store.forget_unrecorded()
    for step in list(islice(reversed(log), log.number - number)):
        undone = step.mirrored
        yield from twin.change(undone)
        twin.fold_rest(undone)
        yield
    # without what was undone
    twin.log = twin.log.fresh(number)
    twin.timers = twin.timers.copy()
    twin.clock.set(twin.clock.again(twin.clock.recorded))
    return twin


# -- back to it


def go_back(
    sandbox: Sandbox,
    then: Sandbox,
    cause: Cause,
    instant: int | None = None,
    since: int | None = None,
) -> Step:
    """Record the step from the sandbox, as it is by now, to the earlier state of a copy, which is
    used up.

    The clock goes to an instant (ms) of that state, its last one by default. If the copy has the
    state after a step of the log, `since` is the number of that step: only what changed since is
    compared. Raises Conflict.
    """
    check_not_advancing(sandbox)
    if sandbox.status.is_gone:
        raise not_stored(
            "The sandbox was reset or deleted meanwhile, and its log began again.", "to_step"
        )
    if instant is None:
        instant = then.clock.recorded.now
    clock = sandbox.clock.again(then.clock.at(instant))
    before = sandbox.standing
    step = Step(
        number=sandbox.log.number + 1,
        at=clock.now,
        cause=cause,
        before=before,
        # ids and numbers of timers continue, so that none is used twice
        after=Standing(clock, before.position, then.events.raised, before.timers, then.settings),
        parts=tuple(_between(sandbox, then, _touched(sandbox, since))),
        event_ends=ends_of(list(sandbox.events), list(then.events)),
        reply_ends=ends_of(list(sandbox.replies), list(then.replies)),
        timers_set=then.timers.beyond(sandbox.timers),
        timers_fired=sandbox.timers.beyond(then.timers),
        restores=True,
    )
    sandbox.take(step, None, then)
    return step


def _touched(sandbox: Sandbox, since: int | None) -> Touched | None:
    """The records that the steps after one changed; None where these are not all kept.

    To compare these alone takes no longer in a large sandbox.
    """
    log = sandbox.log
    if since is None or since < log.oldest - 1:
        return None
    found = {}
    # seeded API keys have new secrets in the copy, without a step
    keys = sandbox.store.api_keys.keys
    seeded = {keys[ident] for ident in sandbox.origin.seeded_keys if ident in keys}
    found[sandbox.store.merchant.id, "api_keys"] = seeded
    for step in islice(reversed(log), log.number - since):
        for part in step.parts:
            for change in part.changes:
                found.setdefault((part.merchant.id, change.table), set()).add(change.key)
    return found


def _between(sandbox: Sandbox, then: Sandbox, touched: Touched | None) -> Iterator[Part]:
    """The changes from a sandbox after its newest step to an earlier state.

    Where no log has room for them they are not completed: the log drops the step at once, and the
    event loop waits for each of them.
    """
    room = MOST_BYTES
    for ident, store in (sandbox.stores | then.stores).items():
        nothing = Store(store.merchant, sandbox.rules.layout)
        here = sandbox.stores.get(ident, nothing)
        there = then.stores.get(ident, nothing)
        changes = []
        for change in _changes(here, there, touched):
            changes.append(change)
            room -= change.size
            if room < 0:
                break
        used = []
        for key in here.usage | there.usage:
            was = here.usage.get(key)
            now = there.usage.get(key)
            if was != now:
                used.append(Used(key, now, was))
        if changes or used or nothing in (here, there):
            yield Part.of(
                store.merchant, changes, used, opens=here is nothing, closes=there is nothing
            )
        if room < 0:
            return


def _changes(here: Store, there: Store, touched: Touched | None) -> Iterator[Change]:
    for name, table in here.tables.items():
        mine = table.rows
        theirs = there.tables[name].rows
        if mine is theirs:  # a table to which neither has written since the copy was made
            continue
        if touched is None:
            keys: Iterable[int] = {**mine, **theirs}
        else:
            keys = sorted(touched.get((here.merchant.id, name), ()))
        for key in keys:
            before = mine.get(key)
            after = theirs.get(key)
            if before is not after:
                yield Change(name, before, after)
