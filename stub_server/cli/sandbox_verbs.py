"""The verbs about whole sandboxes that are more than one request.

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
from ..core.record import Body
from ..engine.sandbox import DEFAULT
from ..storage.package import MEDIA
from .options import read_file
from .running_server import Away, Refused, Target

_PAUSE = 0.2  # seconds between two questions of `wait`
_LONGEST_CREATION = 600.0  # seconds

_CALL = "  address   {sandbox[base_url]}\n  API key   {sandbox[credentials][private_key]}"
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


def _created(target: Target, body: Body) -> Body:
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
    sandbox: Body = answer["sandbox"]
    return sandbox


def create(target: Target, **beginning: Any) -> None:
    """Create a sandbox. Without NAME the server chooses a name."""
    answer = {"sandbox": _created(target, given(**beginning))}
    target.show(answer, f"{{sandbox[name]}} is created.\n{_CALL}".format(**answer))


def invite(target: Target, name: str) -> None:
    """Create the sandbox NAME if it does not exist, and print a message with its address and
    credentials.
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


def rewind(target: Target, **to: Any) -> None:
    """Restore an earlier state of a sandbox. Another rewind undoes it."""
    _go_back(target, "/rewind", given(**to))


def restore(target: Target, name: str) -> None:
    """Restore the state NAME."""
    _go_back(target, f"/snapshots/{quote(name, safe='')}/restore", {})


def _go_back(target: Target, path: str, body: Body) -> None:
    answer = target.control("POST", path, json=body)
    sandbox = answer["sandbox"]
    undo = f"stub-server rewind --to-step {sandbox['step'] - 1}{target.flags}"
    target.show(answer, f"{sandbox['name']} shows {sandbox['now']} again. `{undo}` undoes that.")


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


def env(target: Target) -> None:
    """Print address, token and ids as commands for a shell."""
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


def wait(target: Target, url: str | None, timeout: float) -> None:
    """Wait until the server at URL, or that of --server, is ready."""
    target.server, until = url or target.server, monotonic() + timeout
    while True:
        try:
            answer = target.control("GET", "/ready", timeout=max(_PAUSE, until - monotonic()))
            break
        except Away:
            if monotonic() >= until:
                raise
        sleep(_PAUSE)
    target.show(answer, f"{target.server} is ready.")
