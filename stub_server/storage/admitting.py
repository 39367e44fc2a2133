"""Reads a sandbox and its snapshots, of a file or of a store, and makes those that fit the served
contract.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import gt
from typing import Any, NamedTuple

from ..core.record import Body
from ..engine.sandbox import SILENT, Sandbox
from .fitting import SHOWN, faults_of
from .package import MISFITS, BadFile, damaged
from .reading import Reader
from .state import MOST_SNAPSHOTS, Snapshot, measured


class Contents(NamedTuple):
    """What a file or a store has of one sandbox. Each snapshot stands with its head: its name,
    description and times.
    """

    own: Reader
    snapshots: Sequence[tuple[Body, Reader]] = ()
    requests: Sequence[Body] = ()


class Admitted(NamedTuple):
    """A sandbox with the newest steps that led to it, and its snapshots."""

    sandbox: Sandbox
    snapshots: Sequence[Snapshot]


def read_lines(lines: Iterable[tuple[str, Any]], begin: Callable[[Body], Reader]) -> Contents:
    """Read the lines of a sandbox. The line `snapshot` is the head of a snapshot, whose own lines
    follow it.

    `begin` makes the reader of the sandbox, from an empty head, and that of each snapshot, from
    the snapshot's head. Raises BadFile.
    """
    reader = own = begin({})
    snapshots, requests = dict[str, tuple[Body, Reader]](), list[Body]()
    for kind, body in lines:
        if kind == "snapshot":
            reader = begin(body)
            if body["name"] in snapshots or len(snapshots) == MOST_SNAPSHOTS:
                raise damaged(f"one snapshot too many, {body['name']}")
            snapshots[body["name"]] = body, reader
        elif kind == "request":
            requests.append(body)
        elif kind == "later":  # a step, up to one that no file holds
            if body["number"] == own.sandbox.log.number + 1:
                own.read("step", body)
        elif kind != "recording":  # which a replay alone asks for
            reader.read(kind, body)
    return Contents(own, [*snapshots.values()], requests)


def admit(contents: Contents, *, trusted: bool = False) -> Admitted:
    """The sandbox that was read, and its snapshots.

    What is `trusted` kept all laws when it was stored. Raises BadFile, with the reasons.
    """
    found = list[Snapshot]()
    sandbox = _built(contents.own, "", trusted=trusted)
    for head, reader in contents.snapshots:
        where = f"snapshot {head['name']}: "
        _check_origin(sandbox, reader.sandbox, where)
        was = _built(reader, where, trusted=trusted)
        was.status.held_before = SILENT
        found.append(measured(**head, sandbox=was))
    return Admitted(sandbox, found)


def _built(reader: Reader, where: str, *, trusted: bool) -> Sandbox:
    """The sandbox of a state, if it fits and keeps all laws. Raises BadFile."""
    if reader.fitting is not None:
        _refuse(reader.fitting.reasons(reader.sandbox), where)
    try:
        sandbox = reader.end()
        reasons = [] if trusted else list(islice(faults_of(sandbox), SHOWN))
    except MISFITS as error:
        raise damaged(f"{where}its records contradict each other ({error!r})") from None
    _refuse(reasons, where)
    return sandbox


def _refuse(reasons: Iterable[str], where: str) -> None:
    """Raises BadFile with all reasons, if there are any."""
    found = [where + reason for reason in reasons]
    if found:
        raise BadFile("unfit", *found)


def _check_origin(sandbox: Sandbox, snapshot: Sandbox, where: str) -> None:
    """Check that a snapshot is one of a sandbox. Raises BadFile."""
    for name in ("scenario", "seed", "home", "seeded_keys"):
        if getattr(sandbox.origin, name) != getattr(snapshot.origin, name):
            raise damaged(f"{where}it differs from the sandbox in {name}")
    if any(map(gt, _counters(snapshot), _counters(sandbox))):
        raise damaged(f"{where}it is newer than the sandbox itself")


def _counters(sandbox: Sandbox) -> tuple[int, ...]:
    """How many steps, timers, ids and secrets there have been."""
    return (sandbox.log.number, sandbox.timers.last, *sandbox.ids.position)
