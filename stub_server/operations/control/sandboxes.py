"""The sandboxes of this server: list, create, show, fork and delete them."""

from functools import partial

from ...core.record import Body
from ...server import reply
from ...server.reply import Reply
from ...server.sandboxes.entry import Entry
from ...server.views import MOST_SHOWN, checked_beginning, shown, shown_key, summary_of
from ...server.work import Work


async def list_sandboxes(work: Work, query: Body) -> Reply:
    found = await work.server.sandboxes.listed(query.get("name", "*"))
    return reply.listed_here("sandboxes", found, query, partial(summary_of, work))


async def create_sandbox(work: Work, body: Body | None) -> Reply:
    asked = body or {}
    scenario, now = checked_beginning(work, asked)
    entry = await work.server.sandboxes.create(
        asked.get("name"),
        scenario,
        asked.get("seed"),
        now=now,
        ttl=asked.get("ttl_seconds"),
        settings=asked.get("settings"),
    )
    return _made(work, entry)


def get_sandbox(work: Work, name: str) -> Reply:
    return reply.value({"sandbox": shown(work, work.server.sandboxes.entry(name))})


async def delete_sandbox(work: Work, name: str) -> Reply:
    await work.server.sandboxes.delete(name)
    return Reply(204, ())


async def fork_sandbox(work: Work, name: str, body: Body | None) -> Reply:
    asked = body or {}
    entry = await work.server.sandboxes.fork(
        name, asked.get("name"), asked.get("step"), asked.get("ttl_seconds"), deliver=asked.get("deliver", False)
    )
    return _made(work, entry)


async def rotate_sandbox(work: Work, name: str, body: Body | None) -> Reply:
    deletes = (body or {}).get("keys", False)
    entry, made = await work.server.sandboxes.rotate(name, work.cause, keys=deletes)
    return reply.value(
        {
            "sandbox": shown(work, entry),
            "keys": [shown_key(store, record, None) for store, record in made[: -MOST_SHOWN - 1 : -1]],
            "keys_total": len(made),
            "keys_deleted": deletes,
        }
    )


def _made(work: Work, entry: Entry) -> Reply:
    path = f"/_sandbox/sandboxes/{entry.sandbox.name}"
    return reply.value({"sandbox": shown(work, entry)}).created(work, path)
