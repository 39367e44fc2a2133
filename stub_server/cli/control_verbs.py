"""The verbs about a sandbox of a server that are more than one request.

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
from ..core.record import Body, without
from ..engine.sandbox import DEFAULT
from ..storage.package import MEDIA
from ..testing.http import explained
from .asking import show_list
from .options import json_argument, read_file, yaml_text
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

# -- orders


def list_orders(target: Target, limit: int, status: str | None) -> None:
    """List the newest orders of a sandbox."""
    show_list(
        target,
        "orders",
        target.orders(**given(limit=limit, status=status)),
        "id code status totalAmount paymentMethod customer.name",
    )


# -- whole sandboxes


def _created(target: Target, body: Body) -> Any:
    """What is answered of a new sandbox.

    One that takes long is asked for until it is ready, and a terminal shows how far it is.
    """
    answer = target.control(
        "POST",
        "/sandboxes",
        json=body,
        headers={"Prefer": "respond-async"},
        timeout=_LONGEST_CREATION,
    )
    shows = "creation" in answer and sys.stderr.isatty()
    while "creation" in answer:
        name, progress = answer["creation"]["name"], answer["creation"]["progress"]
        if shows:
            click.echo(f"\rCreating {name}: {progress:.0%} ", nl=False, err=True)
        sleep(_PAUSE)
        answer = target.control("GET", f"/sandboxes/{quote(name, safe='')}")
    if shows:
        click.echo(err=True)
    return answer


def create(target: Target, **beginning: Any) -> None:
    """Create a sandbox. Without NAME the server chooses a name."""
    answer = _created(target, given(**beginning))
    target.show(answer, f"{{sandbox[name]}} is created.\n{_CALL}".format(**answer))


def invite(target: Target, name: str) -> None:
    """Create the sandbox NAME if it does not exist, and print a message with its address and
    credentials.
    """
    try:
        found = _created(target, {"name": name})
    except Refused as refusal:
        if refusal.code != "duplicate_sandbox":
            raise
        found = target.control("GET", f"/sandboxes/{quote(name, safe='')}")
    made = found["sandbox"]
    answer = {"sandbox": made["name"], **made["credentials"]}
    server = answer["base_url"].removesuffix(f"/s/{answer['sandbox']}")
    target.show(answer, _INVITATION.format(**answer, server=server))


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


# -- the journal


def show_request(target: Target, ident: str, commands: bool) -> None:
    """Show a request with its answer, what it did and how to send it again."""
    found = _one(target, ident, "the journal has no requests to the API.", commands=commands)
    request = found["request"]
    text = yaml_text(without(request, "curl", "explanation"))
    if request["curl"] is not None:
        text += f"\n\n{request['curl']}"
    target.show(found, text)


def verify_requests(target: Target, expected: str) -> None:
    """Check the requests against an expectation, in the format of POST
    /_sandbox/requests/verify.
    """
    body = json_argument(expected, "The expectation is not a JSON object")
    try:
        report = target.control("POST", "/requests/verify", json=body)
    except Refused as error:
        if error.code != "verification_failed":
            raise
        report = error.body
    for warning in report["warnings"]:
        click.echo(f"Warning: {warning}", err=True)
    target.show(report, yaml_text(report))
    sys.exit(0 if report["ok"] else 1)


def explain(target: Target, ident: str, commands: bool) -> None:
    """Explain a rejected request and suggest a fix."""
    answer = _one(target, ident, "no request was refused.", commands=commands, status="4xx")
    found = answer["request"]["explanation"]
    target.show(found, _explanation_text(answer["request"]))
    sys.exit(1 if found is not None and found["nearest"] is None else 0)


def _one(target: Target, ident: str, none: str, **query: Any) -> Any:
    """A request whole, by its id; for `last` the newest one that a query finds. Raises
    ClickException where there is none.
    """
    if ident == "last":
        newest = target.every("requests", 1, **query)
        if not newest:
            raise click.ClickException(none)
        ident = newest[0]["id"]
    return target.control("GET", f"/requests/{quote(ident, safe='')}")


def _explanation_text(request: Body) -> str:
    text, found = explained(request), request["explanation"]
    if found is None:
        return f"{text}: it was accepted."
    reasons = given(
        request=request["id"],
        contract=found["contract"],
        rule=found["rule"],
        state=found["state"],
    )
    nearest = found["nearest"] or {"curl": "No request was found that succeeds."}
    return f"{text}\n\n{yaml_text(reasons)}\n\n{nearest['curl']}"
