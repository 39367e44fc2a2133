"""Sandboxes that are carried in files: packed on one server, read and judged on another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from ..engine.sandbox import Rules, Sandbox
from ..engine.step import Step
from ..kernel.clock import ClockState, wall_ms
from ..kernel.record import Body
from .admitting import Admitted, admit
from .fitting import Fitting, Shapes
from .package import RECORDING, BadFile, digest_of, is_readable, pack, unpack
from .parts import Unreadable
from .pinned import Snapshot, head_line
from .reading import Reader
from .secrets import adopted, blanked
from .state import WorldState, capture
from .writing import Change, as_it_is, state_lines, step_line, use_line

MOST_SNAPSHOTS = 20


def write_world(
    file: IO[bytes],
    state: WorldState,
    steps: Sequence[Step],
    contract: Body,
    snapshots: Sequence[Snapshot] = (),
    *,
    secrets: bool = True,
) -> None:
    """Write the file of a state that nobody else has; with the newest steps that led there it holds the way as well.

    Raises BadFile for a sandbox that is too large.
    """
    change: Change = as_it_is if secrets else blanked

    def lines() -> Iterator[bytes]:
        yield from world_lines(state, steps, change, secrets=secrets)
        for name, description, now, created_at, pinned, _ in snapshots:
            was = capture(pinned)
            if not secrets:
                was.replies.clear()
            yield head_line(name, description, now, created_at)
            yield from state_lines(was, change)

    pack(file, lines(), contract, secrets=secrets)


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

    def __init__(self, fixtures: Path, secret: bytes, rules: Rules) -> None:
        self._shapes, self._secret, self._rules = Shapes(fixtures), secret, rules

    def admit(
        self,
        data: bytes | bytearray,
        name: str,
        keep: int,
        empty: Callable[[str, int], Sandbox],
        *,
        drop_unfit: bool = False,
    ) -> Admitted:
        """What a file brings, under a name, with at most so many of its steps.

        `empty` and `drop_unfit` are as for `admitting.admit`. Raises BadFile.
        """
        snapshots: dict[str, tuple[Body, Reader]] = {}
        reading = unpack(data, self._shapes.check)
        _, header = next(reading)  # a file without one is refused
        keyless, requests = header["format"] == RECORDING, []
        rewrite = adopted(self._secret, name, anew=not header["secrets"], keyless=keyless)
        fitting = Fitting(self._rules, self._shapes, digest_of(header))
        reader = own = Reader(rewrite, keep, fitting)
        try:
            for kind, body in reading:
                if kind == "snapshot":
                    if body["name"] in snapshots or len(snapshots) == MOST_SNAPSHOTS:
                        raise Unreadable(f"a snapshot {body['name']} too many")
                    reader = Reader(rewrite, fitting=fitting.afresh())
                    snapshots[body["name"]] = body, reader
                elif reader is not own and kind in ("step", "use"):
                    raise Unreadable(f"a line {kind!r} in a snapshot")
                elif kind == "request":
                    requests.append(body)
                elif kind == "later":  # what the requests did
                    own.read("step", body)
                elif kind not in ("recording", "outside"):  # which a replay alone asks for
                    reader.read(kind, body)
            found = admit(own, snapshots.values(), empty, self._secret, resumed, drop_unfit=drop_unfit)
            return found._replace(requests=requests)
        except Unreadable as error:
            raise BadFile("damaged", f"The file is damaged: {error}.") from None


def resumed(clock: ClockState) -> ClockState:
    """The clock of a sandbox that was carried: a running one runs on from the instant at which it was packed."""
    return clock if clock.frozen else clock._replace(offset=clock.now - wall_ms())
