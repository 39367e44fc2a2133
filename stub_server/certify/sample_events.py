"""Events that are sent to a receiver while it is judged: about different real records, and none of them happened."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import count, cycle
from typing import Any, NamedTuple

import orjson

from ..engine.draft import Draft
from ..engine.samples import sample, table_of
from ..engine.sandbox import Sandbox
from ..engine.step import Cause
from ..events.log import Event
from ..kernel.clock import iso
from ..kernel.record import Body
from ..store.memory import Store
from ..store.query import Query, select

RECORDS = 24
LARGE = 250_000  # bytes
_HOUR = 3_600_000
_ENTRY = "x" * 500


class Sample(NamedTuple):
    """One delivery before it is signed."""

    event_id: str
    payload: Body

    @property
    def body(self) -> bytes:
        """The bytes as this service writes them."""
        return orjson.dumps(self.payload)


class Samples:
    """Events of one type, each under an id of its own and, as long as there are enough records, about another one.

    A receiver may remember which events it has seen: no id comes again, in this run or in another.
    """

    def __init__(self, sandbox: Sandbox, store: Store, entry: Body, type_: str, project: str | None, run: str) -> None:
        """`entry` is the type's in the contract's catalogue; `run` names this run and no other."""
        self.type = type_
        self._run = run
        self._numbers = count(1)
        draft = Draft(sandbox, store, Cause("control", run, "certify"))  # to look through, never recorded
        event = sample(draft, type_, entry, project)
        self._events = cycle([event, *_about_others(draft, event, entry, project)])

    def next(self, now: int) -> Sample:
        """A further event that happened now (ms of the machine's clock)."""
        event = next(self._events)._replace(at=now)
        return self._under_new_id(_with_whole_numbers(orjson.loads(event.payload())))

    def older(self, newer: Sample, now: int) -> Sample:
        """Another event about the same record, from the second before."""
        payload = newer.payload | {"timestamp": iso(now - 1000)}
        return self._under_new_id(payload)

    def late(self, now: int) -> Sample:
        """An event from 75 hours ago, when the last retry of this service would come."""
        return self.next(now - 75 * _HOUR)

    def of_unknown_type(self, now: int) -> Sample:
        """A type that came with a later version of the service."""
        base = self.next(now).payload
        data = {"membership": {"id": base["id"], "level": "gold"}}
        return self._under_new_id(base | {"type": "membership.upgraded", "data": data})

    def with_unknown_fields(self, now: int) -> Sample:
        """Members that came with a later version of the service, at every level."""
        new: Body = {"added_later": {"a": [1, None]}}
        base = self.next(now).payload
        data = {name: value | new if isinstance(value, dict) else value for name, value in base["data"].items()}
        return self._under_new_id(base | {"data": data | new} | new)

    def large(self, now: int) -> Sample:
        """A body of 250 kB: much metadata, or where there is none a long text."""
        base = self.next(now).payload
        parts = [*(part for part in base["data"].values() if isinstance(part, dict)), base["data"]]
        holder = next((part for part in parts if isinstance(part.get("metadata"), dict)), None)
        if holder is not None:
            holder["metadata"] = {f"key_{number}": _ENTRY for number in range(LARGE // len(_ENTRY))}
        else:
            parts[0]["description"] = "x" * LARGE
        return self._under_new_id(base)

    def _under_new_id(self, payload: Body) -> Sample:
        ident = f"evt_{blake2b(f'{self._run}/{next(self._numbers)}'.encode(), digest_size=13).hexdigest()}"
        return Sample(ident, payload | {"id": ident})


def _with_whole_numbers(value: Any) -> Any:
    """The same with 80 for 80.0, as JavaScript writes it.

    A receiver that signs what it has parsed and written again then breaks the rule about that alone.
    """
    if isinstance(value, dict):
        return {name: _with_whole_numbers(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _about_others(draft: Draft, event: Event, entry: Body, project: str | None) -> Iterator[Event]:
    """The same event about the other newest records in such a state."""
    store, table = draft.store, table_of(draft.store, entry)
    if table is None:
        return
    query = Query(limit=RECORDS)
    if project is not None:
        if "projectId" not in table.spec.indexes:
            return
        query.equal["projectId"] = project
    lifecycle = draft.sandbox.rules.lifecycles.get(table.spec.schema)
    if lifecycle is not None and lifecycle.field in table.spec.indexes:
        state = next((move.to for move in lifecycle.moves if event.type in move.events), None)
        if state is not None:
            query.equal[lifecycle.field] = state
    example: dict[str, Any] = entry["example"]["data"]
    for record in select(table, query)[0]:
        if record.id != event.subject:
            hidden = table.parse(record).hidden
            others = tuple((name, hidden.get(name, value)) for name, value in example.items() if name != event.key)
            extras = event.extras._replace(others=others)
            yield event._replace(subject=record.id, resource=store.shown(table, record), extras=extras)
