"""Sample events, which did not happen: about a given record, the latest one, or the
contract's example.
"""

import orjson

from ..core.record import Body, Extras, Record, without
from ..core.slices import at_once
from .draft import Draft
from .lists import Event
from .tables.query import Query, select
from .tables.store import Store
from .tables.table import Table, encoded


def nothing_happened(webhook_id: str) -> bytes:
    """The member `test` in the payload of `webhook.test`."""
    return orjson.dumps(
        {"webhookId": webhook_id, "message": "This is a test event. Nothing happened."}
    )


def table_of(store: Store, entry: Body) -> Table | None:
    """The table of the records that a type of event is about; None for one about no record."""
    for table in store.tables.values():
        if table.spec.schema == entry["record"]:
            return table
    return None


def sample(draft: Draft, event_type: str, entry: Body, record: Record | None) -> Event:
    """An event of a type about a record, which is not raised; without one about that of the
    contract's example.

    `entry` is the type's entry in the contract's catalogue.
    """
    key = entry["payload_key"]
    table = table_of(draft.store, entry)
    data: Body = entry["example"]["data"]
    around = without(data, key)
    subject = data[key].get("id", "")
    resource = orjson.dumps(data[key])
    project = None
    if table is not None and record is not None:
        row = table.parse(record)
        around = {name: row.hidden.get(name, value) for name, value in around.items()}
        project = row.project
        subject = record.id
        resource = draft.store.shown(table.name, record)
    return draft.event(
        event_type,
        subject,
        project,
        resource,
        extras=Extras(others=encoded([*around.items()])),
    )


def newest(
    draft: Draft, event_type: str, entry: Body, project_id: str | None = None, most: int = 1
) -> list[Record]:
    """The newest records that such an event could be about, preferably in a state that it leads to.

    For the webhook of a project, only records of that project are used: its keys see no others.
    """
    table = table_of(draft.store, entry)
    if table is None:
        return []
    of_projects = table.name == "projects" or "projectId" in table.views.parts
    if project_id is not None and not of_projects:
        return []
    lifecycle = draft.sandbox.rules.lifecycles.get(table.spec.schema)
    field = ""
    states = list[str]()
    if lifecycle is not None and lifecycle.field in table.views.parts:
        field = lifecycle.field
        states = [move.to for move in lifecycle.moves if event_type in move.events]
    for state in (*states, None):
        query = Query(limit=most)
        if project_id is not None:
            query.only("id" if table.name == "projects" else "projectId", project_id)
        if state is not None:
            query.only(field, state)
        found, _ = at_once(select(table, query))
        if found:
            return found
    return []
