"""How often keys were used: counted beside the steps, and recorded with the next one of their merchant."""

from __future__ import annotations

from .draft import Draft
from .sandbox import Sandbox
from .step import Cause, Step


def flush_usage(sandbox: Sandbox) -> list[Step]:
    """Record now what no step has recorded yet: a step for each merchant whose keys were used since their last one."""
    steps = []
    for store in sandbox.stores.values():
        if store.unrecorded:
            draft = Draft(sandbox, store, Cause("clock", "", "usage"))
            draft.clock = sandbox.clock.at(draft.now)
            step = draft.record()
            assert step is not None  # the draft sets the clock
            steps.append(step)
    return steps
