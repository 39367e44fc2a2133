"""The sandboxes of this server: list, create, show, fork and delete them."""

import asyncio
from functools import partial

from ...core.record import Body
from ...server import lists, reply
from ...server.reply import Reply
from ...server.sandboxes.entry import Entry
from ...server.views import MOST_SHOWN, checked_beginning, shown, shown_key, summary_of
from ...server.work import Work

SOON = 1.0  # seconds in which a sandbox is answered itself, and not where to ask for it


async def list_sandboxes(work: Work, query: Body) -> Reply:
    return lists.listed_here(
        "sandboxes",
        await work.sandboxes.listed(query.get("name", "*")),
        query,
        partial(summary_of, work),
    )


async def create_sandbox(work: Work, body: Body) -> Reply:
    sandboxes = work.sandboxes
    wanted = body.get("name"), checked_beginning(work, body), body.get("ttl_seconds")
    # whether the client prefers to ask for a result that takes a while (RFC 7240)
    preferences = work.request.headers.get(b"prefer", b"").lower().split(b",")
    if b"respond-async" not in map(bytes.strip, preferences):
        return _made(work, await sandboxes.create(*wanted))
    name, creation = await sandboxes.create_beside(*wanted)
    await asyncio.wait((creation,), timeout=SOON)
    if creation.done():
        return _made(work, creation.result())
    return _being_made(work, name, sandboxes.factory.progress(name))


def get_sandbox(work: Work, name: str) -> Reply:
    progress = work.sandboxes.creation(name)
    if progress is not None:
        return _being_made(work, name.lower(), progress)
    return reply.value({"sandbox": shown(work, work.sandboxes.entry(name))})


async def delete_sandbox(work: Work, name: str) -> None:
    await work.sandboxes.delete(name)


async def fork_sandbox(work: Work, name: str, body: Body) -> Reply:
    entry = await work.sandboxes.fork(
        name,
        body.get("name"),
        body.get("step"),
        body.get("ttl_seconds"),
        deliver=body.get("deliver", False),
    )
    return _made(work, entry)


async def rotate_sandbox(work: Work, name: str, body: Body) -> Body:
    deletes = body.get("keys", False)
    entry, newest, total = await work.sandboxes.rotate(
        name, work.cause, keys=deletes, most=MOST_SHOWN
    )
    return {
        "sandbox": shown(work, entry),
        "keys": [shown_key(store, record) for store, record in newest],
        "keys_total": total,
        "keys_deleted": deletes,
    }


def _being_made(work: Work, name: str, progress: float) -> Reply:
    answer = reply.value({"creation": {"name": name, "progress": round(progress, 3)}}, 202)
    where = f"{work.prefix}/_sandbox/sandboxes/{name}"
    answer.headers += (b"location", where.encode()), (b"retry-after", b"1")
    return answer


def _made(work: Work, entry: Entry) -> Reply:
    return reply.value({"sandbox": shown(work, entry)}).created(
        work, f"/_sandbox/sandboxes/{entry.sandbox.name}"
    )
