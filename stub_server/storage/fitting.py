"""Checks data that was read: its lines, its records against the served contract, and its laws."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import orjson

from ..contract.document import Document
from ..contract.formats import formats
from ..contract.schema import Schemas, Validator
from ..contract.source import Json, escaped, fixture
from ..core.clock import parse_iso
from ..core.record import Record, has_more_values, place
from ..core.text import counted
from ..core.timers import SENDING
from ..engine.laws import broken
from ..engine.sandbox import Rules, Sandbox
from ..engine.scheduler import JOBS
from ..engine.tables.table import Table, encoded
from .package import damaged

LARGEST_RECORD = 1 << 20  # bytes, as a request's body
SHOWN = 50  # reasons of a refusal
# faults of one value, and values of what is searched for them
MOST_FAULTS, MOST_SEARCHED = 20, 2_000
# Next ids that are compared with those of records and events. A sandbox uses ids one after the
# other, so a position
# that is too low shows in the next ones, unless so many were used that all events are forgotten.
UPCOMING = 4_000
MOST_TIMERS = 300_000  # more than a file has records: requests look at all of them


@cache
def _lines() -> tuple[set[str], Schemas]:
    """The kinds of lines, and the schemas of them and of their parts, which have capitals."""
    described = fixture("sandbox-file.yaml")
    kinds = set(filter(str.islower, described["components"]["schemas"]))
    return kinds, Schemas(described, formats(lambda text: True, lambda text: True))


def check_line(kind: str, body: Any) -> None:
    """Validate a line of a file against the schema of its kind. Raises BadFile."""
    kinds, _ = _lines()
    if kind not in kinds:
        raise damaged(f"it has a line of an unknown kind, {kind[:40]!r}")
    fault = _fault(kind, body)
    if fault is not None:
        raise damaged(f"{kind}{fault}")


def _fault(name: str, value: Any) -> str | None:
    """Where a value breaks the schema of a name, and how; None where it keeps it."""
    validator = _lines()[1].component(name, request=True)
    return None if validator.is_valid(value) else validator.reason(value)


class Fault(NamedTuple):
    """Why a value does not fit. In the JSON pointer `*` stands for any place in a list."""

    pointer: str
    reason: str


class Fitting:
    """Holds the records of one sandbox to the served contract; new members of those of another one
    are filled in.
    """

    def __init__(self, rules: Rules, digest: str) -> None:
        """`digest` is that of the contract that the data is of, empty where it is of several."""
        self._rules = rules
        self.is_other = digest != rules.document.identity["digest"]
        self._unfit: dict[tuple[str, str], tuple[str, dict[str, None]]] = {}

    def reasons(self, sandbox: Sandbox) -> list[str]:
        """What of a sandbox that was read, and of the steps that led to it, does not fit.

        A line for each table and JSON pointer, with the number of records. Raises BadFile for one
        without its own merchant.
        """
        home = sandbox.origin.home
        if home not in sandbox.stores:
            raise damaged(f"the sandbox's own merchant {home} is missing")
        for event in sandbox.events:
            if event.type not in self._rules.payload_keys:
                fault = Fault("/type", f"the contract has no event {event.type[:80]!r}")
                self._blame("events", event.id, fault)
        for timer in sandbox.timers.pending():
            if timer.job not in JOBS and timer.job != SENDING:
                fault = Fault("/job", f"there is no job {timer.job[:80]!r}")
                self._blame("timers", str(timer.seq), fault)
            elif timer.merchant_id not in sandbox.stores:
                fault = Fault("/merchant_id", "there is no such merchant")
                self._blame("timers", str(timer.seq), fault)
        return self.unfit()

    def unfit(self) -> list[str]:
        """What of the records that were read does not fit."""
        found = []
        for (table, pointer), (reason, idents) in self._unfit.items():
            where, records = f"{table} {pointer}".rstrip(), counted(len(idents), "record")
            found.append(f"{where}: {reason} ({records}), such as {next(iter(idents))}")
        return found

    def _blame(self, table: str, ident: str, *faults: Fault) -> None:
        for pointer, reason in faults:
            place = table[:40], pointer
            if len(self._unfit) < SHOWN or place in self._unfit:
                self._unfit.setdefault(place, (reason, {}))[1][ident] = None

    def record(self, table: str, record: Record) -> Record:
        """A version as the served contract has it."""
        spec = self._rules.layout.tables.get(table)
        if spec is None:
            self._blame(table, record.id, Fault("", "there is no such table"))
            return record
        if len(record.public) + len(record.hidden) > LARGEST_RECORD:
            self._blame(table, record.id, Fault("", "it is larger than 1 MiB"))
            return record
        part, faults = self._fitted(spec.schema, record.public)
        if part is not record.public:
            record = record._replace(public=part)
        if not faults:
            public, hidden = orjson.loads(part), orjson.loads(record.hidden)
            key = place(parse_iso(public[spec.created]), record.id)
            if (record.id, record.key) != (public["id"], key):
                faults = [
                    Fault("/id", "its id or its time of creation differs from the one inside")
                ]
            elif fault := _fault(f"Hidden_{table}", hidden):
                faults = [Fault(*f"hidden{fault}".split(": ", 1))]
        self._blame(table, record.id, *faults)
        return record

    def _fitted(self, name: str, part: bytes) -> tuple[bytes, list[Fault]]:
        """JSON as the schema of a name has it, the same bytes where it fits, and why it
        does not fit.
        """
        value, validator = orjson.loads(part), self._rules.schemas.component(name)
        if validator.is_valid(value):
            return part, []
        if self.is_other:
            value = _filled(self._rules.document, self._rules.document.schema(name), value)
        if validator.is_valid(value):
            return encoded(value), []
        return part, _faults(validator, value)


def _filled(document: Document, schema: Json, value: Json) -> Json:
    """The value, with its default or null for each required member that it lacks and that may
    have one.
    """
    schema = document.resolve(schema)
    for part in schema.get("allOf", ()):
        value = _filled(document, part, value)
    if isinstance(value, list) and "items" in schema:
        return [_filled(document, schema["items"], item) for item in value]
    if not isinstance(value, dict):
        return value
    whole = dict(value)
    for name, member in schema.get("properties", {}).items():
        described = document.resolve(member)
        if name in value:
            whole[name] = _filled(document, member, value[name])
        elif name in schema.get("required", ()) and (
            "default" in described or _may_be_null(described)
        ):
            whole[name] = described.get("default")
    return whole


def _may_be_null(schema: Json) -> bool:
    return schema.get("nullable") is True or {"enum": [None]} in schema.get("oneOf", ())


def _faults(validator: Validator, value: Json) -> list[Fault]:
    """Why a value does not fit; of a very wide one only that it does not."""
    if has_more_values(value, MOST_SEARCHED):
        return [Fault("", f"it does not fit, and has more than {MOST_SEARCHED:,} values")]
    found = []
    for error in islice(validator.iter_errors(value), MOST_FAULTS):
        pointer = ""
        kind: Any = error.kind
        for step in error.instance_path:
            pointer += "/*" if isinstance(step, int) else f"/{escaped(step)}"
        if kind.name == "required":
            pointer += f"/{escaped(kind.property)}"
            found.append(Fault(pointer[:200], "required and has no default"))
        elif kind.name == "additionalProperties":
            for name in kind.unexpected[:MOST_FAULTS]:
                place = f"{pointer}/{escaped(name)}"[:200]
                found.append(Fault(place, "the contract has no such member"))
        else:
            found.append(Fault(pointer[:200], error.message[:200]))
    return found


def faults_of(sandbox: Sandbox) -> Iterator[str]:
    """What is wrong with a sandbox whose records each fit: timers, usage, ids, unique keys, and
    laws.
    """
    if len(sandbox.timers) > MOST_TIMERS:
        yield f"timers: there are more than {MOST_TIMERS:,}"
    for store in sandbox.stores.values():
        for ident in store.usage:
            if store.api_keys.find(ident) is None:
                yield f"merchants /usage: there is no API key {ident}"
    yield from _reused_ids(sandbox)
    for table in sandbox.tables():
        yield from _clashes(table)
    yield from broken(sandbox)


def _reused_ids(sandbox: Sandbox) -> Iterator[str]:
    """Records and events with an id that the next ones would get, as the position of ids
    is too low.
    """
    coming = sandbox.ids.upcoming(UPCOMING)
    for table in sandbox.tables():
        for record in table.rows.values():
            if record.id in coming:
                yield f"{table.name} {record.id}: a new record would be given this id"
    for ident in sandbox.stores:
        if ident in coming:
            yield f"merchant {ident}: a new record would be given this id"
    for event in sandbox.events:
        if event.id in coming:
            yield f"event {event.id}: a new event would be given this id"


def _clashes(table: Table) -> Iterator[str]:
    for row in table.all_rows():
        for name, extract in table.extracts.items():
            value = extract(row)
            if value is not None and table.unique[name].get(value) != row.id:
                yield f"{table.name} {row.id}: {name} is that of another record"
