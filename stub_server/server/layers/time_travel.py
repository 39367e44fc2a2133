"""Answers as a sandbox was after a step, or at an instant: `X-Sandbox-As-Of`."""

import re
from collections import deque
from copy import copy
from dataclasses import replace
from weakref import ref

from ...core.clock import parse_iso
from ...core.problem import BadRequest
from ...engine.history import check_kept, state_at, step_at
from ...engine.sandbox import Sandbox
from ..work import Work
from .way import Way

AS_OF = b"x-sandbox-as-of"
NAME = "X-Sandbox-As-Of"
PAST_STATES = 4  # earlier states that are cached, of all sandboxes; each may have tables of its own
_STEP = re.compile(r"[0-9]{1,15}").fullmatch


class Past:
    """The earlier states of the sandboxes of a server."""

    def __init__(self) -> None:
        self._states: deque[tuple[ref[Sandbox], int, Sandbox]] = deque(maxlen=PAST_STATES)

    async def of(self, work: Work) -> Sandbox:
        """A copy of the sandbox of a request as it was after the step, or at the instant, that its
        header names.

        Raises BadRequest.
        """
        text = work.request.headers[AS_OF].decode("latin-1").strip()
        instant = None if _STEP(text) else _instant(text)
        number = int(text) if instant is None else step_at(work.sandbox, instant, NAME)
        check_kept(work.sandbox.log, number, NAME)
        state = await self._state(work, number)
        # others may be reading the same state at another instant
        then = replace(state, clock=copy(state.clock))
        then.clock.now = then.clock.recorded.now if instant is None else instant
        return then

    async def _state(self, work: Work, number: int) -> Sandbox:
        sandbox = work.sandbox
        for known, step, past in self._states:
            if step == number and known() is sandbox:
                return past
        with work.waiting():
            state: Sandbox = await work.sandboxes.worker.in_line(
                state_at(sandbox, number, sandbox.name), sandbox.name
            )
        state.journal = sandbox.journal
        self._states.append((ref(sandbox, self._forget), number, state))
        return state

    def _forget(self, deleted: ref[Sandbox]) -> None:
        self._states = deque((past for past in self._states if past[0] is not deleted), PAST_STATES)


def check_past(way: Way) -> None:
    """Raises BadRequest for a request whose answer cannot be that of an earlier state."""
    method = way.request.method
    if way.endpoint.base:
        raise _impossible(
            f"it is for the API only, and {way.trace.path[:60]} always shows the present"
        )
    if method not in ("GET", "HEAD"):
        raise _impossible(f"it is for GET only, not {method[:20]}: the past cannot be changed")


def _instant(text: str) -> int:
    """An instant, in ms. Raises BadRequest for what is none, and no number of a step either."""
    try:
        return parse_iso(text)
    except ValueError:
        raise _impossible(
            f"{text[:60]!r} is neither the number of a step nor a date-time such as"
            " 2026-11-20T14:32:05Z"
        ) from None


def _impossible(why: str) -> BadRequest:
    """400 for a header that asks for what cannot be shown."""
    return BadRequest.at(NAME, f"{NAME}: {why}.", where="header", violation="as_of")
