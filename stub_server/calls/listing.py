"""What every list operation shares: filters, time range, search, sort order, page."""

from collections.abc import Collection, Mapping
from typing import Any

from ..contract.formats import range_end_ms
from ..domain.documents import normalise
from ..kernel.page import Page
from ..kernel.record import Body
from ..kernel.text import finder
from ..store.query import Query, select
from ..store.table import Table
from .call import Call
from .reply import Reply, listed

_SHAPING = frozenset(("page", "limit", "sort", "created_since", "created_until"))


def query_of(call: Call, table: Table, query: Body, handled: Collection[str] = ()) -> Query:
    """A list's query parameters as a query of the store: each filter uses the index of the same name.

    `handled` are those that the operation applies itself; any other without an index adds a warning.
    """
    sort: str = query.get("sort", "-createdAt")
    key = sort.removeprefix("-")
    found = Query(
        sort=None if key in ("createdAt", "created_at") else key,
        newest_first=sort.startswith("-"),
        page=query.get("page", 1),  # an overlay may have taken a parameter away
        limit=query.get("limit", 20),
    )
    if "created_since" in query:
        found.since = range_end_ms(query["created_since"])
    if "created_until" in query:
        found.until = range_end_ms(query["created_until"])
    for name, value in query.items():
        if name in _SHAPING:
            continue
        if name in table.spec.search:
            found.contains[name] = finder(value)
        elif name in table.indexes or name in table.unique:
            found.equal[name] = _PLAIN.get(name, _same)(value)
        elif name not in handled:
            call.warn(f"filter_without_effect:{name}")  # an overlay added or renamed it
    return found


def _same(value: Any) -> Any:
    return value


_PLAIN: Mapping[str, Any] = {
    "email": str.lower,
    "document": normalise,
    "code": str.upper,
    **dict.fromkeys(("projectId", "planId", "customerId", "subscriptionId", "webhookId"), str.lower),
}


def restrict(call: Call, table: Table, query: Query) -> None:
    """A key with `allowed_projects` sees only what belongs to those projects."""
    projects = call.who.projects
    if projects is None:
        return
    if table.name == "projects":
        query.ids = sorted(projects)
    elif table.name == "customers":
        query.ids = call.store.customers_of(projects)
    elif "projectId" in table.indexes:
        query.within = ("projectId", sorted(projects))


def page_of(call: Call, table: Table, query: Query) -> tuple[list[bytes], Page]:
    """The public bytes of the records on the requested page, and its pagination."""
    restrict(call, table, query)
    records, total = select(table, query)
    if table.spec.live or table.spec.mirrors:
        shown = [call.store.shown(table, record) for record in records]
    else:
        shown = [record.public for record in records]
    return shown, Page(query.page, query.limit, total)


def list_reply(call: Call, table: Table, query: Body, message: str, member: str) -> Reply:
    """The reply of a list operation that has no filters of its own."""
    rows, page = page_of(call, table, query_of(call, table, query))
    return listed(message, member, rows, page)
