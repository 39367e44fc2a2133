"""Events that did not happen: about a record that is asked for, the latest one, or the contract's example."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from ..events.log import Event
from ..kernel.record import Body, Extras, Record
from ..store.memory import Store
from ..store.query import Query, select
from ..store.table import Table
from .draft import Draft


def nothing_happened(webhook_id: str) -> bytes:
    """What stands under `test` in the payload of `webhook.test`."""
    return orjson.dumps({"webhookId": webhook_id, "message": "This is a test event. Nothing happened."})


def sample(draft: Draft, event_type: str, entry: dict[str, Any], project_id: str | None) -> Event:
    """An event of a type; `entry` is the type's entry in the contract's catalogue.

    For the webhook of a project only records of that project serve: its keys may see no others.
    """
    table = table_of(draft.store, entry)
    record = None if table is None else _latest(draft, table.name, event_type, project_id)
    told = told_of(draft.store, entry, record)
    return Event(
        draft.ids.event(),
        event_type,
        draft.now,
        draft.store.merchant.id,
        entry["payload_key"],
        told.subject,
        project_id,
        told.resource,
        b"",
        told.extras,
    )


class Told(NamedTuple):
    """What an event tells: of which record, its bytes, what stands beside it, and the project that it belongs to."""

    subject: str
    resource: bytes
    extras: Extras
    project: str | None


def table_of(store: Store, entry: Body) -> Table | None:
    """The table of the records that a type of event is about; None for one about no record."""
    return next((table for table in store.tables.values() if table.spec.schema == entry["record"]), None)


def told_of(store: Store, entry: Body, record: Record | None) -> Told:
    """What an event of a type tells of a record; without one what the contract's example tells."""
    key = entry["payload_key"]
    data: dict[str, Any] = entry["example"]["data"]
    around = {name: value for name, value in data.items() if name != key}
    table = table_of(store, entry)
    if table is None or record is None:
        subject = data[key].get("id", "")
        return Told(subject, orjson.dumps(data[key]), Extras(others=tuple(around.items())), None)
    row = table.parse(record)
    around = {name: row.hidden.get(name, value) for name, value in around.items()}
    project = record.id if table.name == "projects" else row.public.get("projectId", row.hidden.get("projectId"))
    return Told(record.id, store.shown(table, record), Extras(others=tuple(around.items())), project)


def raised(draft: Draft, event_type: str, told: Told) -> Event:
    """Raise an event as it is told, for everybody who listens."""
    return draft.raise_event(event_type, told.subject, told.resource, b"", told.extras, told.project)


def latest(draft: Draft, event_type: str, table: Table) -> Record | None:
    """The newest record that such an event could be about, preferably in a state that it leads to."""
    return _latest(draft, table.name, event_type, None)


def _latest(draft: Draft, name: str, event_type: str, project_id: str | None) -> Record | None:
    """The newest record, preferably in a state that such an event leads to."""
    table = draft.store.tables[name]
    query = Query(limit=1)
    if project_id is not None:
        if name == "projects":
            query.ids = [project_id]
        elif "projectId" in table.spec.indexes:
            query.equal["projectId"] = project_id
        else:
            return None
    lifecycle = draft.sandbox.rules.lifecycles.get(table.spec.schema)
    if lifecycle is not None and lifecycle.field in table.spec.indexes:
        for state in dict.fromkeys(move.to for move in lifecycle.moves if event_type in move.events):
            found, _ = select(table, _in_state(query, lifecycle.field, state))
            if found:
                return found[0]
    found, _ = select(table, query)
    return found[0] if found else None


def _in_state(query: Query, field: str, state: str) -> Query:
    return Query(limit=1, ids=query.ids, equal=query.equal | {field: state})
