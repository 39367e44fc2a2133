"""Snapshots, states of a sandbox with a name: create, list, show, restore and delete them."""

from ...contract.redaction import Redactor
from ...core.clock import iso, wall_ms
from ...core.record import Body
from ...server import lists
from ...server.reply import Reply
from ...server.sandboxes.entry import records_of
from ...server.views import shown
from ...server.work import Work
from ...storage.state import Snapshot
from .turns import own_turn


async def create_snapshot(work: Work, body: Body) -> Body:
    sandboxes, name, description = work.sandboxes, body["name"], body.get("description")
    if description is not None:  # lists show it, and files that hold no secrets
        own = work.server.guard.admin_key, work.server.settings.secret
        description = Redactor(own=own).text(description)
    async with own_turn(work):
        while True:
            entry = work.entry
            copy = entry.sandbox.fork(entry.name)
            snapshot = Snapshot(name, description, copy.clock.now, wall_ms(), copy)
            entry.snapshots.check_room(snapshot)
            await sandboxes.persistence.settled(entry.sandbox)
            if await sandboxes.persistence.keep_snapshot(entry, snapshot):
                break  # else it was reset meanwhile, and what there is now is meant
    work.trace.before = snapshot.sandbox.log.number  # attempts may have ended before its turn
    return {"snapshot": _shown(snapshot)}


def list_snapshots(work: Work, query: Body) -> Reply:
    return lists.listed_here("snapshots", [*reversed(work.entry.snapshots.values())], query, _shown)


async def delete_snapshot(work: Work, name: str) -> None:
    await work.sandboxes.persistence.drop_snapshot(work.entry, name)


async def restore_snapshot(work: Work, name: str) -> Body:
    async with own_turn(work) as entry:
        then = entry.snapshots.named(name).sandbox.fork(work.sandbox.name)
        _, step = work.sandboxes.go_back(work.sandbox, then, work.cause)
    work.trace.note(step)
    return {"sandbox": shown(work, entry)}


def _shown(snapshot: Snapshot) -> Body:
    return {
        "name": snapshot.name,
        "description": snapshot.description,
        "step": snapshot.sandbox.log.number,
        "now": iso(snapshot.now),
        "records": records_of(snapshot.sandbox),
        "created_at": iso(snapshot.created_at),
    }
