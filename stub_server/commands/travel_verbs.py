"""The verbs `worlds`, `fork`, `snapshot` and `rewind`; exit codes 0 done, 1 refused, 2 usage or no server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import click

from .options import Number, aimed, ask_and_tell, of_a_server, of_a_server_by_admin, of_a_whole_server

_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


@click.command(context_settings=_SETTINGS)
@click.argument("name", required=False, metavar="[GLOB]")
@click.option("--delete", is_flag=True, help="Delete the sandbox with this name.")
@of_a_whole_server
@_as_json
def worlds(name: str | None, delete: bool, server: str, admin_key: str | None, as_json: bool) -> None:
    """List the sandboxes of a running server, newest first, or delete one. GLOB filters by name."""
    from ..engine.sandbox import DEFAULT
    from . import travel

    if not delete:
        ask_and_tell(
            server, DEFAULT, admin_key, lambda running: travel.worlds(running, name), travel.told_worlds, as_json
        )
        return
    if name is None:
        raise click.UsageError("Say which sandbox, by its name.")
    ask_and_tell(server, name, admin_key, partial(travel.drop, name=name), lambda _: f"{name} is deleted.", as_json)


@click.command(context_settings=_SETTINGS)
@click.argument("name", required=False)
@click.option("--step", type=Number(0), help="Copy the state after this step, not the present one.")
@click.option("--deliver", is_flag=True, help="Deliver the new events of the fork to webhooks.")
@click.option("--ttl", "ttl_seconds", type=Number(1, 31_536_000), metavar="SECONDS", help="Delete it after this time.")
@of_a_server_by_admin
@_as_json
def fork(
    name: str | None,
    step: int | None,
    deliver: bool,
    ttl_seconds: int | None,
    server: str,
    sandbox: str,
    admin_key: str | None,
    as_json: bool,
) -> None:
    """Copy a sandbox to a new one, called NAME if given. Both change independently from then on."""
    from . import travel

    given = {"name": name, "step": step, "deliver": deliver or None, "ttl_seconds": ttl_seconds}
    asked = {option: value for option, value in given.items() if value is not None}
    ask_and_tell(
        server, sandbox, admin_key, lambda running: travel.fork(running, sandbox, asked), travel.told_fork, as_json
    )


@click.command(context_settings=_SETTINGS)
@click.argument("name", required=False)
@click.option("--description", metavar="TEXT", help="Text to show in the list.")
@click.option("--restore", is_flag=True, help="Restore the state that NAME has.")
@click.option("--delete", is_flag=True, help="Delete NAME.")
@of_a_server
@_as_json
def snapshot(
    name: str | None,
    description: str | None,
    restore: bool,
    delete: bool,
    server: str,
    sandbox: str,
    admin_key: str | None,
    as_json: bool,
) -> None:
    """Save the present state of a sandbox as NAME, or restore or delete NAME. Without NAME, list the snapshots."""
    from . import travel

    if restore + delete + (description is not None) > 1:
        raise click.UsageError("--description, --restore and --delete exclude each other.")
    if name is None and (restore or delete or description is not None):
        raise click.UsageError("Say which snapshot, by NAME.")
    call: Callable[[Any], Awaitable[travel.Body]]
    told: Callable[[travel.Body], str]
    if name is None:
        call, told = travel.snapshots, travel.told_snapshots
    elif restore:
        call, told = partial(travel.restore, name=name), partial(travel.told_restored, where=aimed(server, sandbox))
    elif delete:
        call, told = (lambda running: travel.delete(running, name)), (lambda _: f"{name} is deleted.")
    else:
        call, told = (lambda running: travel.take(running, name, description)), travel.told_taken
    ask_and_tell(server, sandbox, admin_key, call, told, as_json)


@click.command(context_settings=_SETTINGS)
@click.option("--to-step", type=Number(0), help="The state after this step; 0 is the seeded state.")
@click.option("--to-request", metavar="ID", help="The state before this request.")
@click.option("--to", "instant", metavar="ISO8601", help="The state at this instant of the sandbox clock.")
@of_a_server
@_as_json
def rewind(
    to_step: int | None,
    to_request: str | None,
    instant: str | None,
    server: str,
    sandbox: str,
    admin_key: str | None,
    as_json: bool,
) -> None:
    """Restore an earlier state of a sandbox. Another rewind undoes it."""
    from . import travel

    given = {"to_step": to_step, "to_request": to_request, "to": instant}
    where = {option: value for option, value in given.items() if value is not None}
    if len(where) != 1:
        raise click.UsageError("Say where to by one of --to-step, --to-request and --to.")
    told = partial(travel.told_rewound, where=aimed(server, sandbox))
    ask_and_tell(server, sandbox, admin_key, lambda running: travel.rewind(running, where), told, as_json)
