"""The verbs about whole sandboxes: list, rotate, copy, go back, export and import; and their tokens.

Exit codes: 0 done, 1 refused, 2 usage or no server.
"""

import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from ..kernel.text import counted
from .options import (
    EXISTING_OR_STDIN,
    Number,
    asks_sandbox,
    asks_server,
    given,
    output_option,
    read_file,
    table,
    verb,
)  # fmt: skip
from .running_server import Target


@verb(short_help="Print a token of the merchant.")
@click.option("--scope", "scopes", multiple=True, default=["*"], help="What the token may do; repeatable.")
@click.option("--expires-in", type=Number(1, 31_536_000), default=2_592_000, help="Seconds that it is valid.")
@asks_sandbox
def token(target: Target, scopes: tuple[str, ...], expires_in: int) -> None:
    """Print a token of the sandbox's merchant."""
    target.may_be_new = True
    answer = target.control("POST", "/tokens", json={"scopes": scopes, "expires_in": expires_in})
    target.show(answer, answer["token"])


@verb(short_help="Print address, token and ids for a shell.")
@asks_sandbox
def env(target: Target) -> None:
    """Print commands for a shell that export the sandbox's address, a token and ids of its records.

    `eval "$(stub-server env)"` sets STUB_URL, STUB_TOKEN, STUB_PROJECT_ID, STUB_PLAN_ID, STUB_CUSTOMER_ID and
    STUB_ORDER_ID, as far as the sandbox has such records. STUB_SERVER and STUB_SANDBOX name it to other commands.
    """
    from ..engine.sandbox import DEFAULT

    target.may_be_new = True
    answer = target.control("GET", "/credentials")
    is_default = answer["sandbox"] == DEFAULT
    variables = {
        "STUB_SERVER": target.server,
        "STUB_SANDBOX": answer["sandbox"],
        "STUB_URL": target.server.rstrip("/") if is_default else target.base,
        "STUB_TOKEN": answer["jwt"],
    }
    for name, ident in answer["sample"].items():
        if ident is not None and name.isidentifier():  # a shell is going to run this
            variables[f"STUB_{name.removesuffix('Id').upper()}_ID"] = ident
    target.show(variables, "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items()))


@verb(short_help="List the sandboxes of a server, rotate or delete one.")
@click.argument("what", nargs=-1, metavar="[GLOB | rotate NAME]")
@click.option("--delete", is_flag=True, help="Delete the sandbox with this name.")
@click.option("--keys", is_flag=True, help="With rotate: also delete the API keys that users made.")
@asks_server
def sandboxes(target: Target, what: tuple[str, ...], delete: bool, keys: bool) -> None:
    """List the sandboxes of a running server, newest first, or delete one. GLOB filters by name.

    `rotate NAME` gives a sandbox new credentials. The earlier tokens, seeded keys, control key and pay links end.
    """
    if len(what) == 2 and what[0] == "rotate" and not delete:
        _rotate(target, what[1], keys=keys)
        return
    if len(what) > 1 or keys:
        raise click.UsageError("Write sandboxes, sandboxes GLOB, sandboxes NAME --delete, or sandboxes rotate NAME.")
    name = what[0] if what else None
    if delete:
        if name is None:
            raise click.UsageError("Give the NAME of the sandbox.")
        target.sandbox = name
        target.control("DELETE", f"/sandboxes/{quote(name, safe='')}")
        target.show({"deleted": name}, f"{name} is deleted.")
        return
    found = target.every("sandboxes", name=name)
    rows = [(s["name"], s["step"], s["now"], s["records"], s["scenario"], s["parent"]) for s in found["sandboxes"]]
    text = table(rows, "NAME STEP NOW RECORDS SCENARIO PARENT") if rows else f"No sandbox is called {name}."
    target.show(found, text)


def _rotate(target: Target, name: str, *, keys: bool) -> None:
    target.sandbox = name
    answer = target.control("POST", f"/sandboxes/{quote(name, safe='')}/rotate", json={"keys": keys})
    made = answer["sandbox"]
    text = (
        f"{made['name']} has new credentials. Earlier tokens, seeded keys, control key and pay links have ended.\n"
        f"{_how_to_call(made)}\n  control   {made['credentials']['control_key']}"
    )
    if answer["keys_total"]:
        outcome = "deleted" if keys else "still valid (--keys deletes them)"
        text += f"\n{counted(answer['keys_total'], 'API key')} that users made: {outcome}"
    target.show(answer, text)


@verb(short_help="Copy a sandbox to a new one.")
@click.argument("name", required=False)
@click.option("--step", type=Number(0), help="Copy the state after this step, not the present one.")
@click.option("--deliver", is_flag=True, help="Deliver the new events of the fork to webhooks.")
@click.option("--ttl", "ttl_seconds", type=Number(1, 31_536_000), metavar="SECONDS", help="Delete it after this time.")
@asks_sandbox
def fork(target: Target, name: str | None, step: int | None, deliver: bool, ttl_seconds: int | None) -> None:
    """Copy a sandbox to a new one, called NAME if given. Both change independently from then on."""
    body = given(name=name, step=step, deliver=deliver, ttl_seconds=ttl_seconds)
    answer = target.control("POST", f"/sandboxes/{quote(target.sandbox, safe='')}/fork", json=body)
    made = answer["sandbox"]
    text = f"{made['name']} is a fork of {made['parent']} after step {made['step']}.\n{_how_to_call(made)}"
    target.show(answer, text)


def _how_to_call(sandbox: dict[str, Any]) -> str:
    return f"  address   {sandbox['base_url']}\n  API key   {sandbox['credentials']['private_key']}"


@verb(short_help="Save, list, restore or delete a state of a sandbox.")
@click.argument("name", required=False)
@click.option("--description", metavar="TEXT", help="Text to show in the list.")
@click.option("--restore", is_flag=True, help="Restore the state that NAME has.")
@click.option("--delete", is_flag=True, help="Delete NAME.")
@asks_sandbox
def snapshot(target: Target, name: str | None, description: str | None, restore: bool, delete: bool) -> None:
    """Save the present state of a sandbox as NAME, or restore or delete NAME. Without NAME, list the snapshots."""
    if restore + delete + (description is not None) > 1:
        raise click.UsageError("--description, --restore and --delete exclude each other.")
    if name is None:
        if restore or delete or description is not None:
            raise click.UsageError("Give the NAME of the snapshot.")
        found = target.every("snapshots")
        rows = [(s["name"], s["step"], s["now"], s["records"], s["description"]) for s in found["snapshots"]]
        target.show(found, table(rows, "NAME STEP NOW RECORDS DESCRIPTION", "The sandbox has no snapshot."))
        return
    path = f"/snapshots/{quote(name, safe='')}"
    if restore:
        answer = target.control("POST", f"{path}/restore")
        target.show(answer, _restored(target, answer))
    elif delete:
        target.control("DELETE", path)
        target.show({"deleted": name}, f"{name} is deleted.")
    else:
        answer = target.control("POST", "/snapshots", json=given(name=name, description=description))
        made, records = answer["snapshot"], counted(answer["snapshot"]["records"], "record")
        target.show(answer, f"{made['name']} is the state after step {made['step']}, at {made['now']}: {records}.")


@verb(options_metavar="{--to-step N | --to-request ID | --to ISO8601} [OPTIONS]")
@click.option("--to-step", type=Number(0), help="The state after this step; 0 is the seeded state.")
@click.option("--to-request", metavar="ID", help="The state before this request.")
@click.option("--to", "instant", metavar="ISO8601", help="The state at this instant of the sandbox clock.")
@asks_sandbox
def rewind(target: Target, to_step: int | None, to_request: str | None, instant: str | None) -> None:
    """Restore an earlier state of a sandbox. Another rewind undoes it."""
    body = given(to_step=to_step, to_request=to_request, to=instant)
    if len(body) != 1:
        raise click.UsageError("Give one of --to-step, --to-request and --to.")
    answer = target.control("POST", "/rewind", json=body)
    count = answer["undone"]
    undone = f"{'1 step is' if count == 1 else f'{count} steps are'} undone"
    target.show(answer, f"{undone}: {_restored(target, answer)}")


def _restored(target: Target, answer: Any) -> str:
    sandbox = answer["sandbox"]
    undo = f"stub-server rewind --to-step {sandbox['step'] - 1}{target.flags}"
    return f"{sandbox['name']} shows {sandbox['now']} again. `{undo}` undoes that."


# -- files


@verb(short_help="Write a sandbox to a file.", options_metavar="[--output FILE] [OPTIONS]")
@output_option("sandbox")
@click.option("--history", is_flag=True, help="With the stored steps, so that earlier states can be restored.")
@click.option(
    "--no-secrets",
    is_flag=True,
    help="Leave out signing keys, digests of API keys and saved replies; else keep the file to yourself.",
)
@asks_sandbox
def export(target: Target, output: Path | None, history: bool, no_secrets: bool) -> None:
    """Write a sandbox to one file, which `import` and `serve --restore` read."""
    from ..files.package import MEDIA

    query = {"history": history, "secrets": not no_secrets}
    target.download("/export", query, MEDIA, output, "sandbox")


@verb(short_help="Write the requests of a sandbox to a recording.", options_metavar="[--output FILE] [OPTIONS]")
@output_option("stub")
@click.option(
    "--no-secrets", is_flag=True, help="Leave out signing keys and saved replies; else keep the file to yourself."
)
@asks_sandbox
def record(target: Target, output: Path | None, no_secrets: bool) -> None:
    """Write a recording: the requests of a sandbox's journal and the state before them."""
    from ..files.package import MEDIA

    query = {"requests": True, "secrets": not no_secrets}
    target.download("/export", query, MEDIA, output, "stub")


@verb("import", short_help="Replace a sandbox by the one in a file.")
@click.argument("file", type=EXISTING_OR_STDIN)
@click.option("--deliver", is_flag=True, help="Deliver new events to webhooks.")
@asks_sandbox
def import_(target: Target, file: Path, deliver: bool) -> None:
    """Replace a sandbox of a running server with the one in FILE (- for standard input)."""
    from ..files.package import MEDIA

    target.may_be_new = True
    query, how = {"deliver": deliver}, {"Content-Type": MEDIA}
    made = target.control("POST", "/import", content=read_file(file), params=query, headers=how)
    shown = made["sandbox"]
    text = f"{shown['name']} is the sandbox of {file}: step {shown['step']}, {counted(shown['records'], 'record')}, "
    target.show(made, f"{text}{shown['now']}.\n{_how_to_call(shown)}")
