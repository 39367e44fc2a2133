"""The verbs `sandboxes`, `fork`, `snapshot` and `rewind`; exit codes 0 done, 1 refused, 2 usage or no server."""

from __future__ import annotations

from copy import copy
from typing import Any
from urllib.parse import quote

import click

from ..kernel.text import counted
from .options import Number, Target, asks_sandbox, asks_sandbox_as_admin, asks_server, given, table, verb


@verb()
@click.argument("name", required=False, metavar="[GLOB]")
@click.option("--delete", is_flag=True, help="Delete the sandbox with this name.")
@asks_server
def sandboxes(target: Target, name: str | None, delete: bool) -> None:
    """List the sandboxes of a running server, newest first, or delete one. GLOB filters by name."""
    if delete:
        if name is None:
            raise click.UsageError("Say which sandbox, by its name.")
        path = f"/sandboxes/{quote(name, safe='')}"
        target._replace(sandbox=name).ask(lambda running: running.control("DELETE", path))
        target.show({"deleted": name}, f"{name} is deleted.")
        return
    found = target.ask(lambda running: running.every("/sandboxes", "sandboxes", given(name=name)))
    rows = [(s["name"], s["step"], s["now"], s["records"], s["scenario"], s["parent"]) for s in found["sandboxes"]]
    target.show(found, table(rows, "NAME STEP NOW RECORDS SCENARIO PARENT"))


worlds = copy(sandboxes)  # the name until version 0.1, for two releases more
worlds.name, worlds.hidden = "worlds", True


@verb()
@click.argument("name", required=False)
@click.option("--step", type=Number(0), help="Copy the state after this step, not the present one.")
@click.option("--deliver", is_flag=True, help="Deliver the new events of the fork to webhooks.")
@click.option("--ttl", "ttl_seconds", type=Number(1, 31_536_000), metavar="SECONDS", help="Delete it after this time.")
@asks_sandbox_as_admin
def fork(target: Target, name: str | None, step: int | None, deliver: bool, ttl_seconds: int | None) -> None:
    """Copy a sandbox to a new one, called NAME if given. Both change independently from then on."""

    def text(answer: Any) -> str:
        sandbox = answer["sandbox"]
        return (
            f"{sandbox['name']} is a fork of {sandbox['parent']} after step {sandbox['step']}.\n"
            f"  address   {sandbox['base_url']}\n"
            f"  API key   {sandbox['credentials']['private_key']}"
        )

    body = given(name=name, step=step, deliver=deliver or None, ttl_seconds=ttl_seconds)
    target.control(text, "POST", f"/sandboxes/{quote(target.sandbox, safe='')}/fork", json=body)


@verb()
@click.argument("name", required=False)
@click.option("--description", metavar="TEXT", help="Text to show in the list.")
@click.option("--restore", is_flag=True, help="Restore the state that NAME has.")
@click.option("--delete", is_flag=True, help="Delete NAME.")
@asks_sandbox
def snapshot(target: Target, name: str | None, description: str | None, restore: bool, delete: bool) -> None:
    """Save the present state of a sandbox as NAME, or restore or delete NAME. Without NAME, list the snapshots."""

    def saved(answer: Any) -> str:
        made = answer["snapshot"]
        records = counted(made["records"], "record")
        return f"{made['name']} is the state after step {made['step']}, at {made['now']}: {records}."

    if restore + delete + (description is not None) > 1:
        raise click.UsageError("--description, --restore and --delete exclude each other.")
    if name is None:
        if restore or delete or description is not None:
            raise click.UsageError("Say which snapshot, by NAME.")
        found = target.ask(lambda running: running.every("/snapshots", "snapshots"))
        rows = [(s["name"], s["step"], s["now"], s["records"], s["description"]) for s in found["snapshots"]]
        target.show(found, table(rows, "NAME STEP NOW RECORDS DESCRIPTION", "The sandbox has no snapshot."))
        return
    path = f"/snapshots/{quote(name, safe='')}"
    if restore:
        target.control(lambda answer: _restored(target, answer), "POST", f"{path}/restore")
    elif delete:
        target.ask(lambda running: running.control("DELETE", path))
        target.show({"deleted": name}, f"{name} is deleted.")
    else:
        target.control(saved, "POST", "/snapshots", json=given(name=name, description=description))


@verb()
@click.option("--to-step", type=Number(0), help="The state after this step; 0 is the seeded state.")
@click.option("--to-request", metavar="ID", help="The state before this request.")
@click.option("--to", "instant", metavar="ISO8601", help="The state at this instant of the sandbox clock.")
@asks_sandbox
def rewind(target: Target, to_step: int | None, to_request: str | None, instant: str | None) -> None:
    """Restore an earlier state of a sandbox. Another rewind undoes it."""

    def text(answer: Any) -> str:
        count = answer["undone"]
        return f"{'1 step is' if count == 1 else f'{count} steps are'} undone: {_restored(target, answer)}"

    body = given(to_step=to_step, to_request=to_request, to=instant)
    if len(body) != 1:
        raise click.UsageError("Say where to by one of --to-step, --to-request and --to.")
    target.control(text, "POST", "/rewind", json=body)


def _restored(target: Target, answer: Any) -> str:
    sandbox = answer["sandbox"]
    undo = f"stub-server rewind --to-step {sandbox['step'] - 1}{target.flags}"
    return f"{sandbox['name']} shows {sandbox['now']} again. `{undo}` undoes that."
