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
from .package import BadFile, pack, unpack
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
    change: Change = as_it_is if secrets else blanked
    return pack(world_lines(state, steps, change, secrets=secrets), secrets=secrets)


def world_lines(state: WorldState, steps: Sequence[Step], change: Change, *, secrets: bool) -> Iterator[bytes]:
    """The lines of a state and of the newest steps that led there."""
    if not secrets:
        state.replies.clear()
        steps = [step._replace(saved=None, forgotten_replies=()) for step in steps]
    unrecorded = state.forget_unrecorded() if steps else {}
    for step in reversed(steps):
        state.unfold(step)
    yield from state_lines(state, change)
    for step in steps:
        yield step_line(step, change)
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
        settle(world, Carried(state, steps), self._secret, resumed(state.clock))
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


def settle(world: Sandbox, carried: Carried, secret: bytes, clock: ClockState) -> None:
    """Fill an empty world with what was read, if it can live here. Its log has no steps yet. Raises BadFile."""
    reasons = misfits(world.rules, carried.state, carried.steps)
    if reasons:
        raise BadFile("unfit", *reasons)
    try:
        build(world, carried.state, secret, clock)
        reasons = check_built(world)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError) as error:
        raise BadFile("damaged", f"The file is damaged: its records do not go together ({error!r}).") from None
    if reasons:
        raise BadFile("unfit", *reasons)


def resumed(clock: ClockState) -> ClockState:
    """The clock of a world that was carried: a running one runs on from the instant at which it was packed."""
    return clock if clock.frozen else clock._replace(offset=clock.now - wall_ms())
