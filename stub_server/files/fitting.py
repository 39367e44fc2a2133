"""Whether a world from elsewhere can live here: its lines, its records against the served contract, its laws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson

from ..audit.invariants import broken
from ..contract.formats import formats
from ..contract.schema import ContractViolation, Schemas, Validator
from ..contract.source import read
from ..domain.api_keys import PRIVATE, PRIVATE_LENGTH, PUBLIC, PUBLIC_LENGTH, digest
from ..engine.jobs import JOBS
from ..engine.rules import Rules
from ..engine.sandbox import Sandbox
from ..engine.step import Step
from ..events.signing import new_key
from ..kernel.clock import parse_iso
from ..kernel.ids import derived_text
from ..kernel.record import Record
from ..kernel.timers import SENDING
from ..store.table import Table, place, whole
from .package import BadFile
from .state import WorldState

SHOWN = 50  # reasons of a refusal
# Blocks of ids that are compared with what is there. A world uses them up in a row: whose position is one of before
# has records or events of the next ones, or of so many that all are forgotten.
UPCOMING = 1_000
_ID = (1 << 128) - 1  # of a record's key


class Shapes:
    """Holds the lines of a file to their schemas, `world-file.yaml` of the fixtures, read when first needed."""

    def __init__(self, fixtures: Path) -> None:
        self._path = fixtures / "world-file.yaml"
        self._compiled: dict[str, Validator] = {}

    def check(self, kind: str, body: Any) -> None:
        """Hold a line to the schema of its kind. Raises BadFile."""
        if kind not in self._compiled and (not kind.islower() or kind not in self._names):
            raise BadFile("damaged", f"The file is damaged: it has a line of an unknown kind, {kind[:40]!r}.")
        fault = self._fault(kind, body)
        if fault is not None:
            raise BadFile("damaged", f"The file is damaged: {kind}{fault}.")

    def hidden(self, table: str, hidden: Any) -> str | None:
        """What is wrong with the hidden part of a record of a table, and where."""
        return self._fault("Hidden_" + table, hidden)

    def _fault(self, name: str, value: Any) -> str | None:
        validator = self._compiled.get(name)
        if validator is None:
            validator = self._compiled[name] = self._schemas.component(name, request=True)
        return None if validator.is_valid(value) else validator.reason(value)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(read(self._path)["components"]["schemas"])

    @cached_property
    def _schemas(self) -> Schemas:
        return Schemas(read(self._path), formats(_anything, _anything))


def _anything(text: str) -> bool:
    return True


def misfits(rules: Rules, shapes: Shapes, state: WorldState, steps: Iterable[Step]) -> list[str]:
    """What of a state, and of what its steps replaced, does not fit the contract that this server serves."""
    found: list[str] = []
    for reason in _reasons(rules, shapes, state, steps):
        found.append(reason)
        if len(found) >= SHOWN:
            break
    return found


def _reasons(rules: Rules, shapes: Shapes, state: WorldState, steps: Iterable[Step]) -> Iterator[str]:
    if state.home not in state.owned:
        yield f"merchant {state.home}: the sandbox's own merchant is missing"
    for owned in state.owned.values():
        for name, rows in owned.rows.items():
            for record in rows.values():
                yield from _misfit(rules, shapes, name, record)
    for event in state.events:
        if event.type not in rules.payload_keys:
            yield f"event {event.id}: the contract has no event {event.type[:80]!r}"
    for timer in state.timers.values():
        if timer[2] not in JOBS and timer[2] != SENDING:
            yield f"timer {timer[1]}: there is no job {timer[2][:80]!r}"
    for step in steps:
        for name, record, before in step.puts:
            yield from _misfit(rules, shapes, name, record)
            if before is not None:
                yield from _misfit(rules, shapes, name, before)
        for name, record in step.drops:
            yield from _misfit(rules, shapes, name, record)


def _misfit(rules: Rules, shapes: Shapes, name: str, record: Record) -> Iterator[str]:
    spec = rules.layout.tables.get(name)
    if spec is None:
        yield f"{name[:40]} {record.id}: there is no such table"
        return
    public = orjson.loads(record.public)
    try:
        rules.layout.checks[spec.schema](public)
    except ContractViolation as error:
        yield f"{name} {record.id}: {error}"
        return
    if public["id"] != record.id or record.key != place(parse_iso(public[spec.created]), record.id):
        yield f"{name} {record.id}: its id or its time of creation is another inside"
    fault = shapes.hidden(name, orjson.loads(whole(name, record)))
    if fault is not None:
        yield f"{name} {record.id}: hidden{fault}"


def check_built(world: Sandbox) -> list[str]:
    """What is wrong with a world that was built of records that each fit: unique keys, and laws of all together."""
    found = list(islice(chain(_given_again(world), _shown_again(world)), SHOWN))
    if found:
        return found
    for store in world.stores.values():
        for table in store.tables.values():
            found = list(_clashes(table))
            if found:
                return found[:SHOWN]
    return list(islice(broken(world), SHOWN))


def _given_again(world: Sandbox) -> Iterator[str]:
    """What has an id already that new records or events would be given next: the position of ids is one of before."""
    records, events = world.ids.upcoming(UPCOMING)
    for ident, store in world.stores.items():
        for table in store.tables.values():
            for record in table.rows.values():
                if record.key & _ID in records:
                    yield f"{table.name} {record.id}: a new record would be given this id"
        if int(ident.replace("-", ""), 16) in records:
            yield f"merchant {ident}: a new record would be given this id"
    for event in world.events:
        if int(event.id.removeprefix("evt_"), 16) in events:
            yield f"event {event.id}: a new event would be given this id"


def _shown_again(world: Sandbox) -> Iterator[str]:
    """Whose secrets new keys or webhooks would be given: the position of secrets is one of before."""
    made = [
        (table, record)
        for store in world.stores.values()
        for table in (store.api_keys, store.webhooks)
        for record in table.rows.values()
        if record.id not in world.seeded_keys
    ]
    if not made:
        return
    blocks = list(world.ids.upcoming_secrets(UPCOMING))
    upcoming = {new_key(block[:32]) for block in blocks}
    upcoming |= {PUBLIC + derived_text(block, PUBLIC_LENGTH) for block in blocks}
    upcoming |= {digest(PRIVATE + derived_text(block, PRIVATE_LENGTH)) for block in blocks}
    for table, record in made:
        public, hidden = orjson.loads(record.public), orjson.loads(record.hidden)
        own = {public.get("public_key"), hidden.get("digest"), *(key["key"] for key in hidden.get("signing_keys", ()))}
        if not upcoming.isdisjoint(own):
            yield f"{table.name} {record.id}: a new one would be given its secret"


def _clashes(table: Table) -> Iterator[str]:
    for row in table.all_rows():
        for name, extract in table.spec.unique.items():
            value = extract(row.public, row.hidden)
            if value is not None and table.unique[name].get(value) != row.id:
                yield f"{table.name} {row.id}: {name} is that of another record"
