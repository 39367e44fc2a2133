"""Checks data that was read: its lines, its records against the served contract, and its laws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import orjson

from ..contract.document import Document
from ..contract.formats import formats
from ..contract.schema import Schemas, Validator
from ..contract.source import Json, escaped, fixture
from ..core.clock import parse_iso
from ..core.record import Body, Record, has_more_values, place
from ..core.text import counted
from ..core.timers import SENDING
from ..engine.laws import broken
from ..engine.sandbox import Rules, Sandbox
from ..engine.scheduler import JOBS
from ..engine.tables.specs import TableSpec
from ..engine.tables.table import Table, encoded, size_of
from .package import damaged

LARGEST_RECORD = 1 << 20  # bytes, as a request's body
SHOWN = 50  # reasons of a refusal
# faults of one value, and values of what is searched for them
MOST_FAULTS = 20
MOST_SEARCHED = 2_000
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
    """Holds the records of one state to the served contract; new members of those of another one
    are filled in.
    """

    def __init__(self, rules: Rules, contract: str, *, trusted: bool = False) -> None:
        """`contract` is the digest of the one that the data is of, empty where it is of several.

        What is `trusted` fits that one, and kept all laws when it was stored.
        """
        self._rules = rules
        self._contract = contract
        self.is_trusted = trusted
        self.is_other = contract != rules.document.identity["digest"]
        self._needs_no_check = trusted and not self.is_other
        self._unfit: dict[tuple[str, str], tuple[str, dict[str, None]]] = {}

    def another(self, contract: str | None) -> Fitting:
        """The same for another state of the sandbox, which is of a contract, or of the same."""
        if contract is None:
            contract = self._contract
        return Fitting(self._rules, contract, trusted=self.is_trusted)

    @property
    def fits(self) -> bool:
        """Whether all records that were read fit."""
        return not self._unfit

    def reasons(self, sandbox: Sandbox) -> list[str]:
        """What of a sandbox that was read, and of the steps that led to it, does not fit.

        A line for each table and JSON pointer, with the number of records. Raises BadFile for one
        without its own merchant.
        """
        if self._needs_no_check:
            return []
        home = sandbox.origin.home
        if home not in sandbox.stores:
            raise damaged(f"the sandbox's own merchant {home} is missing")
        for event in sandbox.events:
            if event.type not in self._rules.payload_keys:
                self._blame("events", event.id, "/type", "the contract has no such event")
        for timer in sandbox.timers.pending():
            if timer.job not in JOBS and timer.job != SENDING:
                self._blame("timers", str(timer.seq), "/job", "there is no such job")
            elif timer.merchant_id not in sandbox.stores:
                self._blame("timers", str(timer.seq), "/merchant_id", "there is no such merchant")
        return self.unfit()

    def unfit(self) -> list[str]:
        """What of the records that were read does not fit."""
        found = []
        for (table, pointer), (reason, idents) in self._unfit.items():
            where = f"{table} {pointer}".rstrip()
            records = counted(len(idents), "record")
            found.append(f"{where}: {reason} ({records}), such as {next(iter(idents))}")
        return found

    def _blame(self, table: str, ident: str, pointer: str, reason: str) -> None:
        place = table[:40], pointer
        if len(self._unfit) < SHOWN or place in self._unfit:
            self._unfit.setdefault(place, (reason, {}))[1][ident] = None

    def record(self, table: str, record: Record) -> Record:
        """A version as the served contract has it."""
        if self._needs_no_check:
            return record
        spec = self._rules.layout.tables.get(table)
        if spec is None:
            faults = [Fault("", "there is no such table")]
        elif size_of(record) > LARGEST_RECORD:
            faults = [Fault("", "it is larger than 1 MiB")]
        else:
            public = orjson.loads(record.public)
            validator = self._rules.schemas.component(spec.schema)
            if self.is_other and not validator.is_valid(public):
                document = self._rules.document
                public = _filled(document, document.schema(spec.schema), public)
                record = record._replace(public=encoded(public))
            faults = _faults(validator, public) or _inside(table, spec, record, public)
        for fault in faults:
            self._blame(table, record.id, *fault)
        return record


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
        elif name in schema.get("required", ()):
            may_be_null = described.get("nullable") or {"enum": [None]} in described.get(
                "oneOf", ()
            )
            if may_be_null or "default" in described:
                whole[name] = described.get("default")
    return whole


def _inside(table: str, spec: TableSpec, record: Record, public: Body) -> list[Fault]:
    """Why a record does not fit whose public part does."""
    key = place(parse_iso(public[spec.created]), record.id)
    if (record.id, record.key) != (public["id"], key):
        return [Fault("/id", "its id or its time of creation differs from the one inside")]
    parts = [("hidden", f"Hidden_{table}", orjson.loads(record.hidden))]
    if table == "orders":  # the contract has texts there, and rules read instants and amounts
        parts.append(("/last_transaction", "Transaction", public["last_transaction"]))
    for where, schema, value in parts:
        fault = _fault(schema, value)
        if fault is not None:
            return [Fault(*f"{where}{fault}".split(": ", 1))]
    return []


def _faults(validator: Validator, value: Json) -> list[Fault]:
    """Why a value does not fit; of a very wide one only that it does not."""
    if validator.is_valid(value):
        return []
    if has_more_values(value, MOST_SEARCHED):
        return [Fault("", f"it does not fit, and has more than {MOST_SEARCHED:,} values")]
    found = []
    for error in islice(validator.iter_errors(value), MOST_FAULTS):
        kind: Any = error.kind
        at = ""
        for step in error.instance_path:
            at += "/*" if isinstance(step, int) else f"/{escaped(step)}"
        if kind.name == "required":
            member = f"{at}/{escaped(kind.property)}"
            found.append(Fault(member[:200], "required and has no default"))
        elif kind.name == "additionalProperties":
            for name in kind.unexpected[:MOST_FAULTS]:
                member = f"{at}/{escaped(name)}"
                found.append(Fault(member[:200], "the contract has no such member"))
        else:
            found.append(Fault(at[:200], error.message[:200]))
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
    found: list[tuple[str, Iterable[str]]] = [
        ("merchant", sandbox.stores),
        ("event", [event.id for event in sandbox.events]),
        *[(table.name, table.keys) for table in sandbox.tables()],
    ]
    for kind, idents in found:
        for ident in sorted(coming.intersection(idents)):
            yield f"{kind} {ident}: a new one would be given this id"


def _clashes(table: Table) -> Iterator[str]:
    for row in table.all_rows():
        for name, extract in table.extracts.items():
            value = extract(row)
            if value is not None and table.unique[name].get(value) != row.id:
                yield f"{table.name} {row.id}: {name} is that of another record"
