"""Builds response bodies and lists: stored records are inserted as the JSON they are stored as."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import orjson
from starlette.types import Receive, Scope, Send

from ..contract.formats import range_end_ms
from ..core.record import Body, Record
from ..domain.documents import normalise
from ..engine.tables.query import Query, select
from ..engine.tables.table import Table
from .layers.answers import JSON, Answer, Pairs, hang_up, left
from .work import Work

UNBUFFERED = (b"x-accel-buffering", b"no")
"""Tells nginx, and proxies that follow it, to send each piece on at once."""
PATIENCE = 5.0  # seconds that a reader may take none of what is sent
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


class Reply(Answer):
    """What a handler answers: a status, a body in parts, and headers.

    `shape` names the constant JSON around stored records: it is checked against the contract when
    it first occurs, and records when they are written. A body without a shape is checked every
    time.
    """

    __slots__ = ("media", "shape")

    def __init__(
        self,
        status: int,
        parts: Sequence[bytes],
        shape: object = None,
        headers: Pairs = (),
        media: bytes = JSON[1],
    ) -> None:
        self.status, self.parts, self.shape = status, parts, shape
        self.headers, self.media = [*headers], media

    def created(self, work: Work, path: str) -> "Reply":
        """Make it a 201 with a Location:

        `path` has no prefix of the sandbox. Returns the reply itself.
        """
        self.status = 201
        self.headers.append((b"location", f"{work.prefix}{path}".encode()))
        return self

    def completed(self) -> "Reply":
        """Add the headers about the joined body; a 204 has neither. Returns the reply itself."""
        if self.status != 204:
            self.headers += (
                (b"content-type", self.media),
                (b"content-length", b"%d" % len(self.body)),
            )
        return self


class Streamed(Reply):
    """A 200 whose `chunks` are sent as they come, until they end or the reader leaves. Async
    operations answer so.

    A reader who does not read is cut off. An empty piece is not sent: it is an opportunity to
    notice that the reader has left.
    """

    __slots__ = ("_chunks",)

    def __init__(self, chunks: AsyncGenerator[bytes], media: bytes, headers: Pairs = ()) -> None:
        of_streams = (
            (b"cache-control", b"no-store"),
            *headers,
            (b"content-type", media),
            UNBUFFERED,
        )
        super().__init__(200, (), None, of_streams, media)
        self._chunks, self.body = chunks, b""

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.ensure_future(left(receive))
        try:
            await send(
                {"type": "http.response.start", "status": self.status, "headers": self.headers}
            )
            if scope["method"] != "HEAD":
                async for chunk in self._chunks:
                    if leaving.done():
                        return
                    if chunk:
                        async with asyncio.timeout(PATIENCE):
                            await send(
                                {"type": "http.response.body", "body": chunk, "more_body": True}
                            )
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            leaving.cancel()
            await hang_up(scope, receive, unsent=True)
        finally:
            leaving.cancel()
            await self.abandon()

    async def abandon(self) -> None:
        await self._chunks.aclose()


@lru_cache(maxsize=512)
def _around(message: str, member: str, in_data: bool) -> tuple[bytes, bytes]:
    """The JSON before and after the value of a member."""
    text, name = orjson.dumps(message), orjson.dumps(member)
    if in_data:
        return b'{"error":false,"data":{' + name + b":", b'},"message":' + text + b"}"
    return b'{"error":false,"message":' + text + b"," + name + b":", b"}"


def enveloped(message: str, member: str, record: bytes, *, in_data: bool = False) -> Reply:
    """`{error, message, <member>: record}`; `in_data`, for Projects, `{error, data: {<member>:
    record}, message}`.
    """
    before, after = around = _around(message, member, in_data)
    return Reply(200, (before, record, after), around)


def bare(record: bytes) -> Reply:
    """The record itself, as in the Orders group."""
    return Reply(200, (record,), "bare")


async def listed(
    work: Work, table: Table, query: Query, message: str, member: str, *, in_data: bool = False
) -> Reply:
    """`{error, message, <member>: [...], pagination}`; `in_data` both are in `data`, as in
    `enveloped`.

    A key with `allowed_projects` sees only what belongs to those projects. The records are not
    joined: the journal refers to the parts, which the store has anyway.
    """
    projects = None if work.caller is None else work.caller.projects
    if projects is not None:
        if table.name == "projects":
            query.only("id", *projects)
        elif table.name == "customers":
            query.only("id", *work.store.customers_of(projects))
        elif "projectId" in table.spec.indexes:
            query.only("projectId", *projects)
    records, total = await _selected(work, table, query)
    if table.spec.live or table.spec.mirrors:
        shown = [work.store.shown(table, record) for record in records]
    else:
        shown = [record.public for record in records]
    rows = [b","] * max(0, 2 * len(shown) - 1)
    rows[::2] = shown
    before, after = around = _around(message, member, in_data)
    page = orjson.dumps(pagination(query.page, query.limit, total))
    return Reply(
        200, (before, b"[", *rows, b'],"pagination":', page, after), around if rows else None
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
        return await work.server.sandboxes.worker.in_slices(search)
    finally:
        table.readers -= 1


def value(body: Any, status: int = 200) -> Reply:
    """A body that is serialised for this response."""
    return Reply(status, (orjson.dumps(body),))


def listed_here(member: str, items: Sequence[T], query: Body, shown: Callable[[T], Any]) -> Reply:
    """`{<member>: [...], pagination}`: the requested page of items that are in memory, as controls
    show them.
    """
    page, limit = query["page"], query["limit"]
    rows = list(map(shown, items[(page - 1) * limit : page * limit]))
    return value({member: rows, "pagination": pagination(page, limit, len(items))})


def message(text: str, **members: Any) -> Reply:
    """`{error: false, message, ...members}`."""
    return value({"error": False, "message": text, **members})


def query_of(work: Work, table: Table, query: Body, handled: Collection[str] = ()) -> Query:
    """A list's query parameters as a query of the store: each filter uses the index of the same
    name.

    `handled` are filters that the operation applies itself; any other without an index adds a
    warning.
    """
    found = Query(
        sort=_sort_of(query),
        newest_first=query.get("sort", "-").startswith("-"),
        page=query.get("page", 1),  # an overlay may have taken a parameter away
        limit=query.get("limit", 20),
    )
    if "created_since" in query:
        found.since = range_end_ms(query["created_since"])
    if "created_until" in query:
        found.until = range_end_ms(query["created_until"])
    for name, value in query.items():
        if name.endswith("_since"):
            warn_of_empty_range(work, value, query.get(f"{name.removesuffix('since')}until"))
        if name in _SHAPING or _filters(found, table, name, value):
            continue
        if name not in handled:
            work.trace.warn((f"filter_without_effect:{name}",))  # an overlay added or renamed it
    return found


def _sort_of(query: Body) -> str | None:
    """The sort order of a table; None for that of creation."""
    key: str = query.get("sort", "createdAt").removeprefix("-")
    if key in ("createdAt", "created_at"):
        return None
    return key


def _filters(found: Query, table: Table, name: str, value: Any) -> bool:
    """Whether a table can filter by a parameter, which the query then does."""
    if name in table.spec.tags:
        for entry in value:
            key, _, text = entry.partition(":")
            found.only(name, (key, text))
    elif name in table.spec.search:
        found.contains[name] = value
    elif name in table.spec.indexes or name in table.unique:
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


async def list_reply(work: Work, table: Table, query: Body, message: str, member: str) -> Reply:
    """The reply of a list operation that has no filters of its own."""
    return await listed(work, table, query_of(work, table, query), message, member)
