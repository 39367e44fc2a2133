"""The past of a world: which step is meant, and its state then, reached backwards on a copy."""

from collections.abc import Generator
from itertools import islice
from typing import NamedTuple

from ..kernel.clock import iso
from ..kernel.problem import Conflict, detail
from .difference import Difference
from .log import Log
from .restoring import change_records
from .sandbox import Sandbox


class Reached(NamedTuple):
    """A copy of a world in an earlier state, and what separates it from the world as it was when that was asked."""

    world: Sandbox
    difference: Difference


def check_kept(log: Log, number: int, field: str = "step") -> None:
    """Refuse a step whose state cannot be had. Raises Conflict."""
    if number > log.number:
        raise unkept(f"The newest step of this sandbox is {log.number}.", field)
    if number < log.oldest - 1:
        message = f"Step {number} is not kept any more; the oldest state that is is that after step {log.oldest - 1}."
        raise unkept(message, field)


def unkept(message: str, field: str, where: str | None = None) -> Conflict:
    """409 for a state that cannot be had; `field` is a member of the body unless `where` says else, or a header."""
    where = where or ("header" if field.startswith("X-") else "body")
    return Conflict(message, code="step_not_kept", details=[detail(field, "step_not_kept", message, where)])


def step_at(sandbox: Sandbox, instant: int, field: str) -> int:
    """The last step at an instant (ms) or before it. Raises Conflict for one that is not kept or has not come yet."""
    log, now = sandbox.log, sandbox.clock.now
    if instant > now:
        raise unkept(f"{iso(instant)} has not come yet: the clock of this sandbox shows {iso(now)}.", field)
    earliest = sandbox.recorded_clock.now
    for step in reversed(log):
        if step.at <= instant:
            return step.number
        earliest = step.clock_before.now
    if earliest > instant:
        message = f"No state of {iso(instant)} is kept; the oldest is that after step {log.oldest - 1}, "
        raise unkept(message + f"of {iso(earliest)}.", field)
    return log.oldest - 1


def step_before(sandbox: Sandbox, request: str, field: str) -> int:
    """The step before the first one of a request; of one that made none, the step at which it came.

    Raises Conflict where neither the journal nor the log knows it, and where that step is not kept.
    """
    trace = sandbox.journal.find(request)
    if trace is not None and not trace.is_of_another:
        check_kept(sandbox.log, trace.before, field)
        return trace.before
    for step in sandbox.log:
        if step.cause.id == request and step.cause.kind in ("request", "control"):
            return step.number - 1
    oldest = sandbox.log.oldest - 1
    message = f"Nothing is kept of a request {request}; the oldest state that is is that after step {oldest}."
    raise unkept(message, field)


def state_at(sandbox: Sandbox, number: int, name: str) -> Generator[None, None, Sandbox]:
    """A copy of a world as it was after a step, under another name, with pauses. A clock that ran runs on from there.

    Raises Conflict for a step that is not kept.
    """
    twin = (yield from reach(sandbox, number, name)).world
    twin.recorded_clock = twin.clock.again(twin.recorded_clock)
    twin.clock.set(twin.recorded_clock)
    return twin


def reach(sandbox: Sandbox, number: int, name: str) -> Generator[None, None, Reached]:
    """The same, with what separates it from the world as it is: records are changed once, however often they were.

    The world goes on meanwhile, and so does its log.
    """
    log = sandbox.log
    check_kept(log, number)
    twin = sandbox.fork(name)
    for store in twin.stores.values():
        store.forget_unrecorded()
    found = Difference(log.number, twin.stores)
    for step in list(islice(reversed(log), log.number - number)):
        yield from found.back(step)
        twin.unfold_rest(step)
        yield
    parts, _ = yield from found.parts(twin.stores)
    yield from change_records(twin.stores, parts, found.merchants, twin.rules.layout)
    twin.log = twin.log.fresh(number)
    return Reached(twin, found)
