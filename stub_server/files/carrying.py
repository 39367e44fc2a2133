"""Worlds that are carried in files: packed on one server, read and judged on another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from ..engine.sandbox import Sandbox
from ..engine.step import Step
from ..kernel.clock import ClockState, wall_ms
from ..kernel.record import Body
from .building import build
from .fitting import Shapes, check_built, misfits
from .package import RECORDING, BadFile, is_readable, pack, unpack
from .parts import Unreadable
from .pinned import Pinned, Shared, head_line, pin, strangers
from .reading import Reader
from .secrets import adopted, blanked
from .state import WorldState, capture
from .writing import Change, as_it_is, state_lines, step_line, use_line

MOST_SNAPSHOTS = 20


class Carried(NamedTuple):
    """What was read of a file: the state, the newest steps that led there, and what each snapshot is called and was.

    `requests` are those of a recording, which led there too.
    """

    state: WorldState
    steps: Sequence[Step]
    snapshots: Sequence[tuple[Body, WorldState]] = ()
    requests: Sequence[Body] = ()


class Admitted(NamedTuple):
    """What a file brings: a world, its newest steps, which its log has not yet, its snapshots and its requests."""

    world: Sandbox
    steps: Sequence[Step]
    snapshots: Sequence[Pinned]
    requests: Sequence[Body]


def write_world(
    file: IO[bytes],
    state: WorldState,
    steps: Sequence[Step],
    snapshots: Sequence[Pinned] = (),
    *,
    secrets: bool = True,
) -> None:
    """Write the file of a state that nobody else has; with the newest steps that led there it holds the way as well.

    Raises BadFile for a world that is too large.
    """
    change: Change = as_it_is if secrets else blanked

    def lines() -> Iterator[bytes]:
        yield from world_lines(state, steps, change, secrets=secrets)
        for name, description, now, created_at, world in snapshots:
            pinned = capture(world)
            if not secrets:
                pinned.replies.clear()
            yield head_line(name, description, now, created_at)
            yield from state_lines(pinned, change)

    pack(file, lines(), secrets=secrets)


def world_lines(state: WorldState, steps: Sequence[Step], change: Change, *, secrets: bool) -> Iterator[bytes]:
    """The lines of a state and of the newest steps that led there."""
    if not secrets:
        state.replies.clear()
        steps = list(map(without_replies, steps))
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


def without_replies(step: Step) -> Step:
    """A step without the saved reply that it may have."""
    return step._replace(saved=None, forgotten_replies=())


class Customs:
    """Reads files for one server, and lets in what fits."""

    def __init__(self, fixtures: Path, secret: bytes) -> None:
        self._shapes, self._secret = Shapes(fixtures), secret

    def admit(self, data: bytes | bytearray, name: str, keep: int, empty: Callable[[str, int], Sandbox]) -> Admitted:
        """What a file brings, under a name, with at most so many of its steps.

        `empty` makes a world without records of a scenario and a seed. Raises BadFile.
        """
        state, steps, snapshots, requests = self._read(data, name, keep)
        world = empty(state.scenario, state.seed)
        settle(world, Carried(state, steps), self._shapes, self._secret, resumed(state.clock))
        shared, pinned = Shared(), []
        shared.share(state)
        for told, was in snapshots:
            where = f"snapshot {told['name']}: "
            for reason in strangers(state, was):
                raise BadFile("damaged", f"The file is damaged: {where}{reason}.")
            shared.share(was)
            copy = empty(was.scenario, was.seed)
            _judge(copy, self._shapes, was, (), partial(pin, copy, was, self._secret), where)
            pinned.append(Pinned(told["name"], told["description"], told["now"], told["created_at"], copy))
        return Admitted(world, steps, pinned, requests)

    def _read(self, data: bytes | bytearray, name: str, keep: int) -> Carried:
        snapshots: dict[str, tuple[Body, Reader]] = {}
        reading = unpack(data, self._shapes.check)
        _, header = next(reading)  # a file without one is refused
        keyless, requests = header["format"] == RECORDING, []
        rewrite = adopted(self._secret, name, anew=not header["secrets"], keyless=keyless)
        reader = own = Reader(rewrite, keep)
        try:
            for kind, body in reading:
                if kind == "snapshot":
                    if body["name"] in snapshots or len(snapshots) == MOST_SNAPSHOTS:
                        raise Unreadable(f"a snapshot {body['name']} too many")
                    reader = Reader(rewrite)
                    snapshots[body["name"]] = body, reader
                elif reader is not own and kind in ("step", "use"):
                    raise Unreadable(f"a line {kind!r} in a snapshot")
                elif kind == "request":
                    requests.append(body)
                elif kind == "later":  # what the requests did
                    own.read("step", body)
                elif kind not in ("recording", "outside"):  # which a replay alone asks for
                    reader.read(kind, body)
            states = [(told, of.state) for told, of in snapshots.values()]
            return Carried(own.state, own.steps[-keep:] if keep else (), states, requests)
        except Unreadable as error:
            raise BadFile("damaged", f"The file is damaged: {error}.") from None


def settle(world: Sandbox, carried: Carried, shapes: Shapes, secret: bytes, clock: ClockState) -> None:
    """Fill an empty world with what was read, if it can live here. Its log has no steps yet. Raises BadFile."""
    _judge(world, shapes, carried.state, carried.steps, partial(build, world, carried.state, secret, clock))


def _judge(
    world: Sandbox, shapes: Shapes, state: WorldState, steps: Sequence[Step], fill: Callable[[], None], where: str = ""
) -> None:
    """Fill a world with a state that fits. Raises BadFile."""
    reasons = misfits(world.rules, shapes, state, steps)
    if not reasons:
        try:
            fill()
            reasons = check_built(world)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError) as error:
            message = f"The file is damaged: {where}its records do not go together ({error!r})."
            raise BadFile("damaged", message) from None
    if reasons:
        raise BadFile("unfit", *(where + reason for reason in reasons))


def resumed(clock: ClockState) -> ClockState:
    """The clock of a world that was carried: a running one runs on from the instant at which it was packed."""
    return clock if clock.frozen else clock._replace(offset=clock.now - wall_ms())
