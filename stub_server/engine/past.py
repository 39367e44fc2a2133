"""The past of a world: its state after an earlier step, reached backwards on a copy."""

from collections.abc import Generator
from itertools import islice

from ..kernel.problem import Conflict, detail
from .sandbox import Sandbox


def state_at(sandbox: Sandbox, number: int, name: str) -> Generator[None, None, Sandbox]:
    """A copy of a world as it was after a step, under another name: with a pause after every step that is undone.

    Raises Conflict for a step that is not kept.
    """
    log = sandbox.log
    if number > log.number:
        message = f"The newest step of this sandbox is {log.number}."
        raise Conflict(message, code="step_not_kept", details=[detail("step", "step_not_kept", message)])
    if number < log.oldest - 1:
        message = f"Step {number} is not kept any more; the oldest state that is is that after step {log.oldest - 1}."
        raise Conflict(message, code="step_not_kept", details=[detail("step", "step_not_kept", message)])
    twin = sandbox.fork(name)
    for step in list(islice(reversed(log), log.number - number)):  # the world goes on meanwhile, and so does its log
        twin.unfold(step)
        yield
    twin.log = twin.log.fresh(number)
    return twin
