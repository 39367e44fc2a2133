"""The sandboxes of this server: list, create, show, fork and delete them."""

from functools import partial

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...calls.views import MOST_SHOWN, checked_beginning, shown, shown_key, summary_of
from ...kernel.record import Body
from ...sandboxes.entry import Entry


async def list_sandboxes(call: Call, query: Body) -> Reply:
    found = await call.server.sandboxes.listed(query.get("name", "*"))
    return reply.listed_here("sandboxes", found, query, partial(summary_of, call))


async def create_sandbox(call: Call, body: Body | None) -> Reply:
    asked = body or {}
    scenario, now = checked_beginning(call, asked)
    entry = await call.server.sandboxes.create(
        asked.get("name"), scenario, asked.get("seed"), now, asked.get("ttl_seconds"), asked.get("settings")
    )
    return _made(call, entry)


def get_sandbox(call: Call, name: str) -> Reply:
    return reply.value({"sandbox": shown(call, call.server.sandboxes.entry(name))})


async def delete_sandbox(call: Call, name: str) -> Reply:
    await call.server.sandboxes.delete(name)
    return Reply(204, ())


async def fork_sandbox(call: Call, name: str, body: Body | None) -> Reply:
    asked = body or {}
    entry = await call.server.sandboxes.fork(
        name, asked.get("name"), asked.get("step"), asked.get("ttl_seconds"), deliver=asked.get("deliver", False)
    )
    return _made(call, entry)


async def rotate_sandbox(call: Call, name: str, body: Body | None) -> Reply:
    deletes = (body or {}).get("keys", False)
    entry, made = await call.server.sandboxes.rotate(name, call.cause, keys=deletes)
    return reply.value(
        {
            "sandbox": shown(call, entry),
            "keys": [shown_key(store, record, None) for store, record in made[: -MOST_SHOWN - 1 : -1]],
            "keys_total": len(made),
            "keys_deleted": deletes,
        }
    )


def _made(call: Call, entry: Entry) -> Reply:
    path = f"/_sandbox/sandboxes/{entry.sandbox.name}"
    return reply.value({"sandbox": shown(call, entry)}).created(call, path)
