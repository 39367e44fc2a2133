"""Lists: the query of a list operation, and the page of records, or of items in memory, that
answers it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from ..contract.formats import range_end_ms
from ..core.record import Body, Record
from ..domain.documents import normalise
from ..engine.tables.indexes import Index, Tags, Texts
from ..engine.tables.query import Query, select
from ..engine.tables.table import Table
from .reply import Reply, around, value
from .work import Work

T = TypeVar("T")
_SHAPING = frozenset(("page", "limit", "sort", "created_since", "created_until"))


def pagination(page: int, limit: int, total: int) -> Body:
    """The contract's Pagination object: page `page` of `limit` rows out of `total`."""
    pages = -(-total // limit)
    return {
        "page": page,
        "limit": limit,
        "total": total,
        "total_pages": pages,
        "has_next": page < pages,
        "has_prev": page > 1 and pages > 0,
    }


async def listed(
    work: Work, name: str, query: Query, message: str, member: str = "", *, in_data: bool = False
) -> Reply:
    """`{error, message, <member>: [...], pagination}` of a table, called like it unless a `member`
    is named; `in_data` both are in `data`, as in `enveloped`.

    A key with `allowed_projects` sees only what belongs to those projects. The records are not
    joined: the journal refers to the parts, which the store has anyway.
    """
    projects = work.projects
    table = work.store.tables[name]
    if projects is not None:
        if name == "projects":
            query.only("id", *projects)
        elif name == "customers":
            query.where = lambda record: work.sees_customer(record.id)
        elif "projectId" in table.views.parts:
            query.only("projectId", *projects)
    records, total = await _selected(work, table, query)
    if table.is_plain:
        shown = [record.public for record in records]
    else:
        shown = [work.store.shown(name, record) for record in records]
    rows = [b","] * max(0, 2 * len(shown) - 1)
    rows[::2] = shown
    before, after = shape = around(message, member or name, in_data)
    page = orjson.dumps(pagination(query.page, query.limit, total))
    return Reply(
        200, (before, b"[", *rows, b'],"pagination":', page, after), shape if rows else None
    )


async def _selected(work: Work, table: Table, query: Query) -> tuple[list[Record], int]:
    """What a list shows of a table; others are served while it is searched."""
    search = select(table, query)
    try:
        next(search)
    except StopIteration as end:
        found: tuple[list[Record], int] = end.value
        return found
    table.readers += 1
    try:
        return await work.in_slices(search)
    finally:
        table.readers -= 1


def listed_here(member: str, items: Sequence[T], query: Body, shown: Callable[[T], Any]) -> Reply:
    """`{<member>: [...], pagination}`: the requested page of items that are in memory, as controls
    show them.
    """
    page, limit = query["page"], query["limit"]
    return value(
        {
            member: list(map(shown, items[(page - 1) * limit : page * limit])),
            "pagination": pagination(page, limit, len(items)),
        }
    )


def query_of(work: Work, name: str, query: Body, handled: Collection[str] = ()) -> Query:
    """A list's query parameters as a query of a table: each filter uses the index of the same name.

    `handled` are filters that the operation applies itself; any other without an index adds a
    warning.
    """
    sort: str = query.get("sort", "-createdAt")
    newest_first, sort = sort.startswith("-"), sort.removeprefix("-")
    found = Query(
        sort=None if sort in ("createdAt", "created_at") else sort,
        newest_first=newest_first,
        page=query.get("page", 1),  # an overlay may have taken a parameter away
        limit=query.get("limit", 20),
    )
    if "created_since" in query:
        found.since = range_end_ms(query["created_since"])
    if "created_until" in query:
        found.until = range_end_ms(query["created_until"])
    for asked, wanted in query.items():
        if asked.endswith("_since"):
            warn_of_empty_range(work, wanted, query.get(f"{asked.removesuffix('since')}until"))
        if asked in _SHAPING or _filters(found, work.store.tables[name], asked, wanted):
            continue
        if asked not in handled:
            work.trace.warn((f"filter_without_effect:{asked}",))  # an overlay added or renamed it
    return found


def _filters(found: Query, table: Table, name: str, value: Any) -> bool:
    """Whether a table can filter by a parameter, which the query then does."""
    kind = type(table.views.parts.get(name))
    if kind is Tags:
        for entry in value:
            key, _, text = entry.partition(":")
            found.only(name, (key, text))
    elif kind is Texts:
        found.contains[name] = value
    elif kind is Index or name in table.unique:
        if name in _PLAIN:
            value = _PLAIN[name](value)
        found.only(name, value)
    else:
        return False
    return True


def warn_of_empty_range(work: Work, since: str | None, until: str | None) -> None:
    """`empty_range` where nothing can be from the one instant on and before the other."""
    if since is not None and until is not None and range_end_ms(since) >= range_end_ms(until):
        work.trace.warn(("empty_range",))


_PLAIN: Mapping[str, Any] = {
    "email": str.lower,
    "document": normalise,
    "code": str.upper,
    **dict.fromkeys(
        ("projectId", "planId", "customerId", "subscriptionId", "webhookId"), str.lower
    ),
}


async def list_reply(work: Work, name: str, query: Body, message: str, member: str = "") -> Reply:
    """The reply of a list operation that has no filters of its own."""
    return await listed(work, name, query_of(work, name, query), message, member)
