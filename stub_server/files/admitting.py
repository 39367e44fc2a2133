"""Makes a sandbox of data that was read, if it fits the served contract, or with `--drop-unfit` of what fits."""

import logging
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import gt
from typing import NamedTuple

import orjson

from ..data.keys import MAIN_ID
from ..engine.sandbox import SILENT, Sandbox
from ..events.log import Event, EventLog
from ..kernel.record import Body, Record
from .fitting import SHOWN, Fitting, faults_of, is_job, things
from .lines import Reader
from .package import BadFile, damaged
from .state import SandboxState, Snapshot, build, measured

DROPPING = "--drop-unfit leaves that out, with what refers to it."
ROUNDS = 20  # in which records that break a law are left out, before the rest is rejected
log = logging.getLogger("stub_server")
_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|evt_[0-9a-f]{26}"
_NAMED = re.compile(_ID)
_REFERENCE = re.compile(rf'"({_ID})"'.encode())


class LeftOut(NamedTuple):
    """What was left out: how many records by table, events, saved replies and steps, and which snapshots."""

    counts: Mapping[str, int]
    snapshots: Sequence[str]
    reasons: Sequence[str]

    def __str__(self) -> str:
        """`customers 2, orders 1, steps 22`."""
        counts = [f"{name} {count:,}" for name, count in self.counts.items()]
        return ", ".join([*counts, *(f"the snapshot {name}" for name in self.snapshots)])

    def tell(self, where: str) -> None:
        log.warning("%s: left out are %s", where, self)
        for reason in self.reasons:
            log.warning("  %s", reason)


class Admitted(NamedTuple):
    """A sandbox with the newest steps that led to it, its snapshots, and what was left out."""

    sandbox: Sandbox
    snapshots: Sequence[Snapshot]
    left_out: LeftOut | None


def admit(
    own: Reader,
    snapshots: Iterable[tuple[Body, Reader]],
    secret: bytes,
    *,
    drop_unfit: bool = False,
    trusted: bool = False,
) -> Admitted:
    """The sandbox that was read, and its snapshots, each with what it is called.

    What is `trusted` kept all laws when it was stored. With `drop_unfit` what does not fit is left out, with what
    refers to it, and then there are no steps. Raises BadFile, with the reasons.
    """
    state, reasons = own.state, _reasons(own)
    fitting = own.fitting if drop_unfit else None
    if reasons and fitting is None:
        raise BadFile("unfit", *reasons)
    before = Counter[str]() if fitting is None else _counts(state)
    gone = set[str]() if fitting is None else {ident for _, thing, ident in things(state) if thing in fitting.unfit}
    for _ in range(ROUNDS):
        if reasons and fitting is not None:
            state.sandbox.log = state.sandbox.log.fresh(state.sandbox.log.number)
            _leave_out(state, gone, fitting)
        most = 0 if trusted and not reasons else SHOWN if fitting is None else None
        broken = _built(state, secret, most)
        if not broken:
            break
        reasons += broken
        named = {match[0] for text in broken if (match := _NAMED.search(text))}
        gone = named.intersection(ident for _, _, ident in things(state))
        if fitting is None or not gone:
            raise BadFile("unfit", *reasons[:SHOWN])
    else:
        raise BadFile("unfit", *reasons[:SHOWN])
    found, others = _snapshots(state, snapshots, secret, reasons, drops=fitting is not None, trusted=trusted)
    left_out = LeftOut(before - _counts(state), others, reasons[:SHOWN]) if reasons else None
    return Admitted(state.sandbox, found, left_out)


def _snapshots(
    state: SandboxState,
    snapshots: Iterable[tuple[Body, Reader]],
    secret: bytes,
    reasons: list[str],
    *,
    drops: bool,
    trusted: bool,
) -> tuple[list[Snapshot], list[str]]:
    """The snapshots of a sandbox that fit, and the names of the others, whose reasons are added."""
    records, events, fitting, others = dict[Record, Record](), dict[str, Event](), list[Snapshot](), list[str]()
    _share(state, records, events)
    for head, reader in snapshots:
        was, where = reader.state, f"snapshot {head['name']}: "
        _check_origin(state.sandbox, was.sandbox, where)
        _share(was, records, events)
        found = _reasons(reader) or _built(was, secret, 0 if trusted else SHOWN, where)
        reasons += [where + reason for reason in found]
        if found and not drops:
            raise BadFile("unfit", *(where + reason for reason in found))
        if found:
            others.append(head["name"])
        else:
            was.sandbox.held_before = SILENT
            fitting.append(measured(head["name"], head["description"], head["now"], head["created_at"], was.sandbox))
    return fitting, others


def _reasons(reader: Reader) -> list[str]:
    """What of a state and its steps does not fit. Raises BadFile."""
    return [] if reader.fitting is None else reader.fitting.reasons(reader.state)


def _built(state: SandboxState, secret: bytes, most: int | None, where: str = "") -> list[str]:
    """Build the sandbox of a state whose records fit; answers at most so much of what breaks laws. Raises BadFile."""
    try:
        return list(islice(faults_of(build(state, secret)), most))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError) as error:
        raise damaged(f"{where}its records contradict each other ({error!r})") from None


# -- snapshots


def _share(state: SandboxState, records: dict[Record, Record], events: dict[str, Event]) -> None:
    """Replace versions of a state by equal ones of an earlier state of the sandbox: restoring compares by identity."""
    for owned in state.owned.values():
        for rows in owned.rows.values():
            for key, record in rows.items():
                rows[key] = records.setdefault(record, record)
    log = state.sandbox.events
    shared = ((event, events.setdefault(event.id, event)) for event in log)
    state.sandbox.events = EventLog.of([old if old == event else event for event, old in shared], log.raised)


def _check_origin(sandbox: Sandbox, snapshot: Sandbox, where: str) -> None:
    """Check that a snapshot is one of a sandbox. Raises BadFile."""
    for name in ("scenario", "seed", "home", "seeded_keys"):
        if getattr(sandbox, name) != getattr(snapshot, name):
            raise damaged(f"{where}it differs from the sandbox in {name}")
    before, own = ((each.log.number, each.timers.last, *each.ids.position) for each in (snapshot, sandbox))
    if any(map(gt, before, own)):
        raise damaged(f"{where}it is newer than the sandbox itself")


# -- leaving out


def _counts(state: SandboxState) -> Counter[str]:
    counts = Counter(table for table, _, _ in things(state))
    counts.update(steps=len(state.sandbox.log))
    return counts


def _leave_out(state: SandboxState, gone: set[str], fitting: Fitting) -> None:
    """Take out what has these ids, and what refers to it. Raises BadFile for the key of the sandbox's own merchant."""
    sandbox, referring = state.sandbox, defaultdict[str, list[str]](list)
    for table, thing, ident in things(state):
        if isinstance(thing, Record):
            for other in _REFERENCE.findall(thing.public + thing.hidden):
                referring[other.decode()].append(ident)
            if table == "webhook_logs" and ident in gone:  # an event without this delivery would break a law
                gone.add(orjson.loads(thing.public).get("event_id"))
    for event in sandbox.events:
        referring[event.subject].append(event.id)
    queue = deque(gone)
    while queue:
        more = [ident for ident in referring.pop(queue.popleft(), ()) if ident not in gone]
        gone.update(more)
        queue.extend(more)
    if MAIN_ID in gone:
        message = f"api_keys {MAIN_ID}: the key of the sandbox's own merchant cannot be left out"
        raise BadFile("unfit", message)
    for owned in state.owned.values():
        for table, rows in owned.rows.items():
            owned.rows[table] = {key: record for key, record in rows.items() if record.id not in gone}
        for key in gone & owned.usage.keys():
            del owned.usage[key]
        for key in gone & owned.unrecorded.keys():
            del owned.unrecorded[key]
    kept = [event for event in sandbox.events if event.id not in gone]
    sandbox.events = EventLog.of(kept, sandbox.events.raised)
    for timer in sandbox.timers.pending():
        if not (is_job(timer) and gone.isdisjoint(_NAMED.findall(timer.subject))):
            sandbox.timers.discard(timer)
    for reply, saved in list(sandbox.replies.items()):
        if reply in fitting.unfit or not gone.isdisjoint(_NAMED.findall(saved.body.decode())):
            sandbox.replies.drop(reply)
    for named in (sandbox.sample, sandbox.personas):
        for name in [name for name, ident in named.items() if ident in gone]:
            del named[name]
