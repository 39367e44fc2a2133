"""What `worlds`, `fork`, `snapshot` and `rewind` ask a running server, and how they tell people what came of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ..kernel.text import counted
from .options import printable
from .server import RunningServer

Body = dict[str, Any]


async def worlds(server: RunningServer, name: str | None) -> Body:
    """All sandboxes whose name matches a glob."""
    return await server.every("/sandboxes", "sandboxes", {} if name is None else {"name": name})


async def drop(server: RunningServer, name: str) -> Body:
    """Nothing is left of the sandbox."""
    await server.drop_sandbox()
    return {"deleted": name}


async def fork(server: RunningServer, sandbox: str, asked: Body) -> Body:
    """A new sandbox with the same past."""
    found: Body = await server.control("POST", f"/sandboxes/{_part(sandbox)}/fork", json=asked)
    return found


async def snapshots(server: RunningServer) -> Body:
    """All snapshots of the sandbox."""
    return await server.every("/snapshots", "snapshots")


async def take(server: RunningServer, name: str, description: str | None) -> Body:
    """A new snapshot."""
    asked = {"name": name} if description is None else {"name": name, "description": description}
    found: Body = await server.control("POST", "/snapshots", json=asked)
    return found


async def restore(server: RunningServer, name: str) -> Body:
    """The sandbox as it was when the snapshot was made."""
    found: Body = await server.control("POST", f"/snapshots/{_part(name)}/restore")
    return found


async def delete(server: RunningServer, name: str) -> Body:
    """Nothing is left of the snapshot."""
    await server.control("DELETE", f"/snapshots/{_part(name)}")
    return {"deleted": name}


async def rewind(server: RunningServer, where: Body) -> Body:
    """The sandbox as it was."""
    found: Body = await server.control("POST", "/rewind", json=where)
    return found


def _part(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")


# -- for people


def told_worlds(found: Body) -> str:
    """A line for each sandbox."""
    rows: list[tuple[str, ...]] = [("NAME", "STEP", "NOW", "RECORDS", "SCENARIO", "PARENT")]
    rows += [
        (w["name"], str(w["step"]), w["now"], str(w["records"]), w["scenario"], w["parent"] or "-")
        for w in found["sandboxes"]
    ]
    return _columns(rows)


def told_fork(found: Body) -> str:
    """Where it is, and how to call it."""
    sandbox = found["sandbox"]
    return (
        f"{sandbox['name']} is a fork of {sandbox['parent']} after step {sandbox['step']}.\n"
        f"  address   {sandbox['base_url']}\n"
        f"  API key   {sandbox['credentials']['private_key']}"
    )


def told_snapshots(found: Body) -> str:
    """A line for each snapshot."""
    rows: list[tuple[str, ...]] = [("NAME", "STEP", "NOW", "RECORDS", "DESCRIPTION")]
    rows += [
        (s["name"], str(s["step"]), s["now"], str(s["records"]), s["description"] or "-") for s in found["snapshots"]
    ]
    return _columns(rows) if len(rows) > 1 else "The sandbox has no snapshot."


def told_taken(found: Body) -> str:
    """What it holds."""
    made = found["snapshot"]
    records = counted(made["records"], "record")
    return f"{made['name']} is the state after step {made['step']}, at {made['now']}: {records}."


def told_restored(found: Body, where: str) -> str:
    """How things stand, and how to undo it; `where` are the options of the sandbox."""
    sandbox = found["sandbox"]
    before = sandbox["step"] - 1
    return (
        f"{sandbox['name']} shows {sandbox['now']} again. `stub-server rewind --to-step {before}{where}` undoes that."
    )


def told_rewound(found: Body, where: str) -> str:
    """The same, with how much was undone."""
    count = found["undone"]
    return f"{'1 step is' if count == 1 else f'{count} steps are'} undone: {told_restored(found, where)}"


def _columns(rows: list[tuple[str, ...]]) -> str:
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
