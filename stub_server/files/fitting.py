"""Checks and converts imported data: its lines, its records against the served contract, and its laws."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from ..audit.laws import broken
from ..contract.converting import Fault
from ..contract.formats import formats
from ..contract.schema import Schemas
from ..contract.source import Json, read
from ..engine.bounded import Log
from ..engine.sandbox import Rules, Sandbox
from ..engine.scheduler import JOBS
from ..engine.step import ReplyKey, Saved
from ..events.log import Event
from ..kernel.clock import parse_iso
from ..kernel.record import Record
from ..kernel.text import counted
from ..kernel.timers import SENDING, Timer
from ..store.table import Table, encoded, place
from .package import damaged
from .state import SandboxState

SHOWN = 50  # reasons of a refusal
# Next ids that are compared with those of records and events. A sandbox uses ids one after the other, so a position
# that is too low shows in the next ones, unless so many were used that all events are forgotten.
UPCOMING = 4_000
Thing = tuple[str, Hashable, str]
"""A table, `events` or `replies`, a member of it as `unfit` has it, and its id."""


class Shapes:
    """Validates lines of a file against their schemas, `sandbox-file.yaml` of the fixtures, read when first needed."""

    def __init__(self, fixtures: Path) -> None:
        self._path = fixtures / "sandbox-file.yaml"

    def check(self, kind: str, body: Any) -> None:
        """Validate a line against the schema of its kind. Raises BadFile."""
        if kind not in self._kinds:
            raise damaged(f"it has a line of an unknown kind, {kind[:40]!r}")
        fault = self.fault(kind, body)
        if fault is not None:
            raise damaged(f"{kind}{fault}")

    def fault(self, name: str, value: Any) -> str | None:
        validator = self._schemas.component(name, request=True)
        return None if validator.is_valid(value) else validator.reason(value)

    @cached_property
    def _kinds(self) -> set[str]:
        return set(filter(str.islower, read(self._path)["components"]["schemas"]))  # those of parts have capitals

    @cached_property
    def _schemas(self) -> Schemas:
        return Schemas(read(self._path), formats(lambda text: True, lambda text: True))


class Fitting:
    """Validates the data of one sandbox against the served contract, and converts it if it is of another one.

    `unfit` has the reasons why versions, events (by their ids) and saved replies (by their keys) do not fit.
    `is_other` says whether the data is of another contract.
    """

    def __init__(self, rules: Rules, shapes: Shapes, digest: str) -> None:
        """`digest` is that of the contract that the data is of, empty where it is of several."""
        self._rules, self._shapes, self._converter = rules, shapes, rules.converter
        self.is_other = digest != rules.converter.contract["digest"]
        self._made: dict[bytes, bytes] = {}  # what became of bytes: of equal ones the same
        self.unfit: dict[Hashable, list[Fault]] = {}

    def reasons(self, state: SandboxState) -> list[str]:
        """What of a state and of the steps that led to it does not fit.

        A line for each table and JSON pointer, with the number of records. Raises BadFile for a state without its own
        merchant.
        """
        home, timers = state.sandbox.home, state.sandbox.timers.pending()
        if home not in state.owned:
            raise damaged(f"the sandbox's own merchant {home} is missing")
        found: dict[tuple[str, str], tuple[str, dict[str, None]]] = {}
        jobs = ((timer[1], timer[2][:80]) for timer in timers if not is_job(timer))
        unfit = [("timers", str(number), Fault("/job", f"there is no job {job!r}")) for number, job in jobs]
        for table, thing, ident in chain(things(state), _past_things(state.sandbox.log)) if self.unfit else ():
            unfit += [(table, ident, fault) for fault in self.unfit.get(thing, ())]
        for table, ident, (pointer, reason) in unfit:
            if len(found) < SHOWN or (table, pointer) in found:
                found.setdefault((table, pointer), (reason, {}))[1][ident] = None
        return [
            f"{table} {pointer}".rstrip()
            + f": {reason} ({counted(len(idents), 'record')}), such as {next(iter(idents))}"
            for (table, pointer), (reason, idents) in found.items()
        ]

    def record(self, table: str, record: Record) -> Record:
        """A version as the served contract has it."""
        spec, faults = self._rules.layout.tables.get(table), [Fault("", "there is no such table")]
        if spec is not None:
            schema, before = self._converter.record(spec.schema), orjson.loads(record.public)
            public, faults = self._fitted(schema, before)
            if public is not before:
                record = replace(record, public=self._made.setdefault(record.public, encoded(public)))
            if not faults:
                key, hidden = place(parse_iso(public[spec.created]), record.id), orjson.loads(record.hidden)
                if (record.id, record.key) != (public["id"], key):
                    faults = [Fault("/id", "its id or its time of creation differs from the one inside")]
                elif fault := self._shapes.fault(f"Hidden_{table}", hidden):
                    faults = [Fault(*f"hidden{fault}".split(": ", 1))]
        if faults:
            self.unfit[record] = faults
        return record

    def _fitted(self, schema: Json, value: Json) -> tuple[Json, list[Fault]]:
        converter = self._converter
        if self.is_other:
            value = converter.converted(schema, value)
        return value, [] if converter.fits(schema, value) else converter.faults(schema, value)

    def event(self, event: Event) -> Event:
        """An event that shows its record as the served contract has it."""
        if event.type not in self._rules.payload_keys:
            self.unfit[event.id] = [Fault("/type", f"the contract has no event {event.type[:80]!r}")]
        elif self.is_other:
            shown = event.resource
            if shown not in self._made:
                before = orjson.loads(shown)
                after = self._converter.converted(self._converter.resource(event.type), before)
                self._made[shown] = shown if after is before else encoded(after)
            event = event._replace(resource=self._made[shown])
        return event

    def reply(self, key: ReplyKey, saved: Saved) -> Saved:
        """A saved reply as the served contract has it, if it describes it."""
        _, method, path, _ = key
        schema = self._converter.answer(method, path, saved.status) if self.is_other else None
        if schema is None:
            return saved
        try:
            before = orjson.loads(saved.body)
        except ValueError:
            return saved
        body, faults = self._fitted(schema, before)
        if faults:
            self.unfit[key] = faults
        return saved if body is before else saved._replace(body=encoded(body))


def things(state: SandboxState) -> Iterator[Thing]:
    """What a state holds."""
    for owned in state.owned.values():
        for table, rows in owned.rows.items():
            yield from ((table[:40], record, record.id) for record in rows.values())
    yield from _named(state.sandbox.events, [key for key, _ in state.sandbox.replies.items()])


def _past_things(log: Log) -> Iterator[Thing]:
    """What steps hold, what they replaced included."""
    for step in log:
        for part in step.parts:
            for table, record, before in part.puts:
                yield from ((table[:40], each, record.id) for each in (record, before) if each is not None)
            yield from ((table[:40], record, record.id) for table, record in part.drops)
        replies = ((step.saved,) if step.saved else ()) + step.forgotten_replies
        yield from _named((*step.events, *step.forgotten_events), [key for key, _ in replies])


def _named(events: Iterable[Event], replies: Iterable[ReplyKey]) -> Iterator[Thing]:
    yield from (("events", event.id, event.id) for event in events)
    yield from (("replies", key, " ".join(key[1:])) for key in replies)


def is_job(timer: Timer) -> bool:
    return timer[2] in JOBS or timer[2] == SENDING


def faults_of(sandbox: Sandbox) -> Iterator[str]:
    """What is wrong with a sandbox whose records each fit: ids, unique keys, or laws, the first that has faults."""
    clashes = (_clashes(table) for store in sandbox.stores.values() for table in store.tables.values())
    for found in (_reused_ids(sandbox), *clashes, broken(sandbox)):
        first = next(found, None)
        if first is not None:
            yield first
            yield from found
            return


def _reused_ids(sandbox: Sandbox) -> Iterator[str]:
    """Records and events with an id that the next ones would get, as the position of ids is too low."""
    coming = sandbox.ids.upcoming(UPCOMING)
    for ident, store in sandbox.stores.items():
        for table in store.tables.values():
            for record in table.rows.values():
                if record.id in coming:
                    yield f"{table.name} {record.id}: a new record would be given this id"
        if ident in coming:
            yield f"merchant {ident}: a new record would be given this id"
    for event in sandbox.events:
        if event.id in coming:
            yield f"event {event.id}: a new event would be given this id"


def _clashes(table: Table) -> Iterator[str]:
    for row in table.all_rows():
        for name, extract in table.spec.unique.items():
            value = extract(row.public, row.hidden)
            if value is not None and table.unique[name].get(value) != row.id:
                yield f"{table.name} {row.id}: {name} is that of another record"
