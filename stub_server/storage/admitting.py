"""Reads a sandbox and its snapshots, of a file or of a store, and makes those that fit the served
contract.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import gt
from typing import Any, NamedTuple

from ..core.record import Body, without
from ..engine.sandbox import SILENT, Sandbox
from .fitting import SHOWN, faults_of
from .package import MISFITS, BadFile, damaged
from .reading import Reader
from .state import MOST_SNAPSHOTS, Snapshot


class Admitted(NamedTuple):
    """A sandbox with the newest steps that led to it, its snapshots, and the requests of a
    recording.
    """

    sandbox: Sandbox
    snapshots: Sequence[Snapshot]
    requests: Sequence[Body]


def admitted(lines: Iterable[tuple[str, Any]], own: Reader) -> Admitted:
    """Read the lines of a sandbox, by a reader that has read nothing. The line `snapshot` is the
    head of a snapshot, whose own lines follow it.

    Raises BadFile, with the reasons.
    """
    read, requests = _read(lines, own)
    sandbox = own.sandbox
    snapshots = list[Snapshot]()
    if not (own.fitting.is_trusted or sandbox.clock.frozen):
        sandbox.clock.set(sandbox.clock.resumed())  # it continues from the instant of the export
    built(own)
    for head, reader in read.values():
        where = f"snapshot {head['name']}: "
        _check_origin(sandbox, reader.sandbox, where)
        was = built(reader, where)
        was.status.held_before = SILENT
        snapshots.append(Snapshot(**head, sandbox=was))
    return Admitted(sandbox, snapshots, requests)


def _read(
    lines: Iterable[tuple[str, Any]], own: Reader
) -> tuple[dict[str, tuple[Body, Reader]], list[Body]]:
    """Read all lines; returns the snapshots by name, each with its head, and the requests."""
    read = dict[str, tuple[Body, Reader]]()
    requests = list[Body]()
    reader = own
    for kind, body in lines:
        if kind == "snapshot":
            reader = own.another(body.get("contract"))
            if body["name"] in read or len(read) == MOST_SNAPSHOTS:
                raise damaged(f"one snapshot too many, {body['name']}")
            read[body["name"]] = without(body, "contract"), reader
        elif kind == "request":
            requests.append(body)
        elif kind == "later":  # a step, up to one that no file holds
            if body["number"] == own.sandbox.log.number + 1:
                own.read("step", body)
        elif kind != "recording":  # which a replay alone asks for
            reader.read(kind, body)
    return read, requests


def built(reader: Reader, where: str = "") -> Sandbox:
    """The sandbox of a state, if it fits and keeps all laws. Raises BadFile."""
    sandbox = reader.sandbox
    reasons = reader.fitting.reasons(sandbox)
    if not (reasons or reader.fitting.is_trusted):
        try:
            reasons = list(islice(faults_of(sandbox), SHOWN))
        except MISFITS as error:
            raise damaged(f"{where}its records contradict each other ({error!r})") from None
    if reasons:
        raise BadFile("unfit", *[where + reason for reason in reasons])
    return sandbox


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
