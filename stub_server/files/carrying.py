"""Worlds that are carried in files: packed on one server, read and judged on another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..engine.sandbox import Sandbox
from ..engine.step import Step
from ..kernel.clock import ClockState, wall_ms
from .building import build
from .fitting import Shapes, check_built, misfits
from .package import BadFile, is_readable, pack, unpack
from .reading import Reader, Unreadable
from .secrets import adopted, blanked
from .state import WorldState
from .writing import Change, as_it_is, state_lines, step_line, use_line


class Carried(NamedTuple):
    """What was read of a file: the state, and the newest steps that led there."""

    state: WorldState
    steps: Sequence[Step]


def file_of(state: WorldState, steps: Sequence[Step], *, secrets: bool = True) -> bytes:
    """The file of a state that nobody else has; with the newest steps that led there it holds the way as well.

    Raises BadFile for a world that is too large.
    """
    return pack(_lines(state, steps, secrets=secrets), secrets=secrets)


def _lines(state: WorldState, steps: Sequence[Step], *, secrets: bool) -> Iterator[bytes]:
    change: Change = as_it_is if secrets else blanked
    if not secrets:
        state.replies.clear()
        steps = [step._replace(saved=None, forgotten_replies=()) for step in steps]
    told = [step_line(step, change) for step in steps]
    too_long = [place for place, line in enumerate(told) if not is_readable(line)]
    if too_long:  # the way begins after the last step that no file holds, such as one that went far back in time
        steps, told = steps[too_long[-1] + 1 :], told[too_long[-1] + 1 :]
    unrecorded = state.forget_unrecorded() if steps else {}
    for step in reversed(steps):
        state.unfold(step)
    yield from state_lines(state, change)
    yield from told
    for merchant_id, used in sorted(unrecorded.items()):
        for key, usage in sorted(used.items()):
            yield use_line(merchant_id, key, usage)


class Customs:
    """Reads files for one server, and lets in what fits."""

    def __init__(self, fixtures: Path, secret: bytes) -> None:
        self._shapes, self._secret = Shapes(fixtures), secret

    def admit(
        self, data: bytes, name: str, keep: int, empty: Callable[[str, int], Sandbox]
    ) -> tuple[Sandbox, Sequence[Step]]:
        """The world of a file, under a name, and at most so many of its newest steps, which its log has not yet.

        `empty` makes a world without records of a scenario and a seed. Raises BadFile.
        """
        state, steps = self._read(data, name, keep)
        world = empty(state.scenario, state.seed)
        reasons = misfits(world.rules, self._shapes, state, steps)
        if reasons:
            raise BadFile("unfit", *reasons)
        try:
            build(world, state, self._secret, resumed(state.clock))
            reasons = check_built(world)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError) as error:
            raise BadFile("damaged", f"The file is damaged: its records do not go together ({error!r}).") from None
        if reasons:
            raise BadFile("unfit", *reasons)
        return world, steps

    def _read(self, data: bytes, name: str, keep: int) -> Carried:
        reader: Reader | None = None
        for kind, body in unpack(data, self._shapes.check):
            if reader is None:
                reader = Reader(adopted(self._secret, name, anew=not body["secrets"]), keep)
                continue
            try:
                reader.read(kind, body)
            except Unreadable as error:
                raise BadFile("damaged", f"The file is damaged: {error}.") from None
        try:
            assert reader is not None  # a file without a header was refused
            return Carried(reader.state, reader.steps[-keep:] if keep else ())
        except Unreadable as error:
            raise BadFile("damaged", f"The file is damaged: {error}.") from None


def resumed(clock: ClockState) -> ClockState:
    """The clock of a world that was carried: a running one runs on from the instant at which it was packed."""
    return clock if clock.frozen else clock._replace(offset=clock.now - wall_ms())
