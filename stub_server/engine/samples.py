"""Events that did not happen, to test a webhook with: about the latest real record, or the contract's example."""

from __future__ import annotations

from typing import Any

import orjson

from ..events.log import Event
from ..kernel.record import Extras, Record
from ..store.query import Query, select
from .draft import Draft


def nothing_happened(webhook_id: str) -> bytes:
    """What stands under `test` in the payload of `webhook.test`."""
    return orjson.dumps({"webhookId": webhook_id, "message": "This is a test event. Nothing happened."})


def sample(draft: Draft, event_type: str, entry: dict[str, Any], project_id: str | None) -> Event:
    """An event of a type; `entry` is the type's entry in the contract's catalogue.

    For the webhook of a project only records of that project serve: its keys may see no others.
    """
    key = entry["payload_key"]
    data: dict[str, Any] = entry["example"]["data"]
    resource, subject = orjson.dumps(data[key]), data[key].get("id", "")
    around = {name: value for name, value in data.items() if name != key}
    store = draft.store
    table = next((table for table in store.tables.values() if table.spec.schema == entry["record"]), None)
    record = None if table is None else _latest(draft, table.name, event_type, project_id)
    if table is not None and record is not None:
        row = table.parse(record)
        resource, subject = store.shown(table, record), record.id
        around = {name: row.hidden.get(name, value) for name, value in around.items()}
    return Event(
        draft.ids.event(),
        event_type,
        draft.now,
        store.merchant.id,
        key,
        subject,
        project_id,
        resource,
        b"",
        Extras(others=tuple(around.items())),
    )


def _latest(draft: Draft, name: str, event_type: str, project_id: str | None) -> Record | None:
    """The newest record, preferably in a state that such an event leads to."""
    table = draft.store.tables[name]
    query = Query(limit=1)
    if project_id is not None:
        if name == "projects":
            query.ids = [project_id]
        elif "projectId" in table.indexes:
            query.equal["projectId"] = project_id
        else:
            return None
    lifecycle = draft.sandbox.rules.lifecycles.get(table.spec.schema)
    if lifecycle is not None and lifecycle.field in table.indexes:
        for state in dict.fromkeys(move.to for move in lifecycle.moves if event_type in move.events):
            found, _ = select(table, _in_state(query, lifecycle.field, state))
            if found:
                return found[0]
    found, _ = select(table, query)
    return found[0] if found else None


def _in_state(query: Query, field: str, state: str) -> Query:
    return Query(limit=1, ids=query.ids, equal=query.equal | {field: state})
