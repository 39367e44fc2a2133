"""The verbs about whole sandboxes: snapshots, earlier states, forks, files and credentials.

Exit codes: 0 done, 1 refused, 2 usage or no server.
"""

import shlex
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

import click

from ..core.members import given
from ..engine.sandbox import DEFAULT
from ..storage.package import MEDIA
from .asking import asking, downloading, group, listing
from .options import EXISTING_OR_STDIN, Number, read_file, url, verb, with_options
from .running_server import Away, Refused, Target, asks_sandbox, asks_server

_PAUSE = 0.2  # seconds between two questions of `wait`
_LONGEST_CREATION = 600.0  # seconds
_YEAR = 31_536_000  # seconds

_NAME = click.argument("name")
_SANDBOX = click.argument("sandbox", metavar="NAME")
_TTL = click.option(
    "--ttl",
    "ttl_seconds",
    type=Number(1, _YEAR),
    metavar="SECONDS",
    help="Delete the sandbox after this time.",
)
_SECRETS = click.option(
    "--no-secrets",
    "secrets",
    flag_value=False,
    default=True,
    is_flag=True,
    help="Leave out signing keys, digests of API keys and saved replies.",
)
# Not from the environment: STUB_SEED and its like are for starting a server.
_BEGINNING = with_options(
    click.option("--scenario", metavar="NAME", allow_from_autoenv=False, help="Use this scenario."),
    click.option("--seed", type=int, allow_from_autoenv=False, help="Use this seed."),
    click.option(
        "--now",
        metavar="ISO8601",
        allow_from_autoenv=False,
        help="Freeze the clock at this instant.",
    ),
)
_CALL = "  address   {sandbox[base_url]}\n  API key   {sandbox[credentials][private_key]}"
_DELETED = "{deleted} is deleted."


def _went_back(target: Target, answer: Any) -> str:
    sandbox = answer["sandbox"]
    undo = f"stub-server rewind --to-step {sandbox['step'] - 1}{target.flags}"
    return f"{sandbox['name']} shows {sandbox['now']} again. `{undo}` undoes that."


_INVITATION = """\
The sandbox {sandbox} is ready.
Keep this message secret: anyone with these keys can use the sandbox.

  address      {base_url}
  console      {base_url}/console
  token        {jwt}
  API key      {private_key}
  control key  {control_key}

The token is valid for thirty days, the keys until they are rotated. Try it:

  curl {base_url}/v2/customers -H 'Authorization: Bearer {private_key}'

For the command stub-server, and for tests:

  export STUB_SERVER={server} STUB_SANDBOX={sandbox} STUB_CONTROL_KEY={control_key}"""


def _created(target: Target, body: dict[str, Any]) -> dict[str, Any]:
    """A new sandbox.

    One that takes long is asked for until it is ready, and a terminal shows how far it is.
    """
    how = {"Prefer": "respond-async"}
    answer = target.control("POST", "/sandboxes", json=body, headers=how, timeout=_LONGEST_CREATION)
    shows = "creation" in answer and sys.stderr.isatty()
    while "creation" in answer:
        name, progress = answer["creation"]["name"], answer["creation"]["progress"]
        if shows:
            click.echo(f"\rCreating {name}: {progress:.0%} ", nl=False, err=True)
        sleep(_PAUSE)
        answer = target.control("GET", f"/sandboxes/{quote(name, safe='')}")
    if shows:
        click.echo(err=True)
    sandbox: dict[str, Any] = answer["sandbox"]
    return sandbox


@verb("create")
@click.argument("name", required=False)
@_BEGINNING
@_TTL
@asks_server
def create(target: Target, **beginning: Any) -> None:
    """Create a sandbox. Without NAME the server chooses a name."""
    answer = {"sandbox": _created(target, given(**beginning))}
    target.show(answer, f"{{sandbox[name]}} is created.\n{_CALL}".format(**answer))


@verb()
@_NAME
@asks_server
def invite(target: Target, name: str) -> None:
    """Create the sandbox NAME if it does not exist, and print a message with its address
    and credentials.
    """
    try:
        made = _created(target, {"name": name})
    except Refused as refusal:
        if refusal.code != "duplicate_sandbox":
            raise
        made = target.control("GET", f"/sandboxes/{quote(name, safe='')}")["sandbox"]
    answer = {"sandbox": made["name"], **made["credentials"]}
    server = answer["base_url"].removesuffix(f"/s/{answer['sandbox']}")
    target.show(answer, _INVITATION.format(**answer, server=server))


@verb("import")
@click.argument("file", type=EXISTING_OR_STDIN)
@click.option("--deliver", is_flag=True, help="Deliver new events to webhooks.")
@asks_sandbox
def import_(target: Target, file: Path, deliver: bool) -> None:
    """Replace a sandbox with the one in FILE (- for standard input)."""
    target.may_be_new = True
    query, how = {"deliver": deliver}, {"Content-Type": MEDIA}
    made = target.control("POST", "/import", content=read_file(file), params=query, headers=how)
    text = (
        "{sandbox[name]} is the sandbox of the file: step {sandbox[step]}, at {sandbox[now]}.\n"
        + _CALL
    )
    target.show(made, text.format(**made))


@verb()
@asks_sandbox
def env(target: Target) -> None:
    """Print address, token and ids as commands for a shell.

    `eval "$(stub-server env)"` sets STUB_URL, STUB_TOKEN, STUB_PROJECT_ID, STUB_PLAN_ID,
    STUB_CUSTOMER_ID and STUB_ORDER_ID; an id is left out if the sandbox has no such record. It also
    sets STUB_SERVER and STUB_SANDBOX, so that other commands use the same sandbox.
    """
    target.may_be_new = True
    answer = target.control("GET", "/credentials")
    variables = {
        "STUB_SERVER": target.server,
        "STUB_SANDBOX": answer["sandbox"],
        "STUB_URL": target.base,
        "STUB_TOKEN": answer["jwt"],
    }
    if answer["sandbox"] == DEFAULT:
        variables["STUB_URL"] = target.server.rstrip("/")
    for name, ident in answer["sample"].items():
        if ident is not None and name.isidentifier():  # a shell is going to run this
            variables[f"STUB_{name.removesuffix('Id').upper()}_ID"] = ident
    lines = []
    for name, value in variables.items():
        lines.append(f"export {name}={shlex.quote(value)}")
    target.show(variables, "\n".join(lines))


@verb()
@click.argument("url", type=url, required=False)
@click.option(
    "--timeout",
    type=float,
    default=30.0,
    metavar="SECONDS",
    help="Give up after this time, with exit code 2.",
)
@asks_server
def wait(target: Target, url: str | None, timeout: float) -> None:
    """Wait until the server at URL, or that of --server, is ready."""
    target.server, until = url or target.server, monotonic() + timeout
    while True:
        try:
            answer = target.control("GET", "/ready")
            break
        except Away:
            if monotonic() >= until:
                raise
        sleep(_PAUSE)
    target.show(answer, f"{target.server} is ready.")


VERBS = (
    group(
        "snapshots",
        "Save, list, restore and delete states of a sandbox.",
        listing(
            "list",
            "snapshots",
            "name step now records description",
            "List the snapshots of a sandbox.",
        ),
        asking(
            "save",
            "POST /snapshots",
            "Save the present state of a sandbox as NAME.",
            _NAME,
            click.option("--description", metavar="TEXT", help="Note about the state."),
            said="{snapshot[name]} is the state after step {snapshot[step]}, at {snapshot[now]}.",
        ),
        asking(
            "restore",
            "POST /snapshots/{name}/restore",
            "Restore the state NAME.",
            _NAME,
            said=_went_back,
        ),
        asking(
            "delete", "DELETE /snapshots/{name}", "Delete the snapshot NAME.", _NAME, said=_DELETED
        ),
    ),
    asking(
        "rewind",
        "POST /rewind",
        "Restore an earlier state of a sandbox. Another rewind undoes it.",
        click.option(
            "--to-step", type=Number(0), help="The state after this step; 0 is the seeded state."
        ),
        click.option("--to-request", metavar="ID", help="The state before this request."),
        click.option(
            "--to", metavar="ISO8601", help="The state at this instant of the sandbox clock."
        ),
        said=_went_back,
    ),
    asking(
        "reset",
        "POST /reset",
        "Restore the seeded state of a sandbox. Everything else in it is deleted.",
        _BEGINNING,
        said="Reset to the scenario {scenario}, seed {seed}, at {now}.",
    ),
    asking(
        "fork",
        "POST /sandboxes/{sandbox}/fork",
        "Copy a sandbox to a new one. Without NAME the server chooses a name. The copies are"
        " independent.",
        click.argument("name", required=False),
        click.option(
            "--step", type=Number(0), help="Copy the state after this step, not the current one."
        ),
        click.option(
            "--deliver", is_flag=True, help="Deliver the new events of the fork to webhooks."
        ),
        _TTL,
        said="{sandbox[name]} is a fork of {sandbox[parent]} after step {sandbox[step]}.\n" + _CALL,
    ),
    group(
        "sandboxes",
        "Create sandboxes, invite their users, list, rotate and delete them.",
        create,
        invite,
        listing(
            "list",
            "sandboxes",
            "name last_used_at step now records scenario parent",
            "List sandboxes, newest first.",
            click.argument("name", metavar="[GLOB]", required=False),
            asks=asks_server,
        ),
        asking(
            "rotate",
            "POST /sandboxes/{sandbox}/rotate",
            "Give a sandbox new credentials. Earlier tokens, seeded keys and pay links stop"
            " working.",
            _SANDBOX,
            click.option("--keys", is_flag=True, help="Also delete the API keys that users made."),
            said="{sandbox[name]} has new credentials; users had made {keys_total} more API keys.\n"
            + _CALL
            + "\n  control   {sandbox[credentials][control_key]}",
            asks=asks_server,
        ),
        asking(
            "delete",
            "DELETE /sandboxes/{sandbox}",
            "Delete the sandbox NAME.",
            _SANDBOX,
            said=_DELETED,
            asks=asks_server,
        ),
    ),
    downloading(
        "export",
        "/export",
        MEDIA,
        "sandbox",
        "Write a sandbox to a file, for `import` and `serve --restore`.",
        click.option(
            "--history",
            is_flag=True,
            help="Include the stored steps, so that earlier states can be restored.",
        ),
        _SECRETS,
    ),
    downloading(
        "record",
        "/export",
        MEDIA,
        "stub",
        "Write a recording: the requests of a sandbox's journal and the state before them.",
        _SECRETS,
        requests=True,
    ),
    import_,
    asking(
        "token",
        "POST /tokens",
        "Print a token of the sandbox's merchant.",
        click.option(
            "--scope",
            "scopes",
            multiple=True,
            default=["*"],
            help="A scope, or * for all; repeatable.",
        ),
        click.option(
            "--expires-in",
            type=Number(1, _YEAR),
            default=2_592_000,
            help="Seconds until the token expires.",
        ),
        said="{token}",
        may_be_new=True,
    ),
    env,
    asking(
        "health",
        "GET /health",
        "Show whether a sandbox is up, its version, data and time.",
        said="{sandbox} is {status}: {version}, {scenario}, {now}.",
    ),
    asking(
        "assumptions",
        "GET /assumptions",
        "List what the source document leaves open and what is assumed.",
    ),
    wait,
)
"""All of them, for the command."""
