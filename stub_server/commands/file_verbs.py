"""The verbs `export` and `import`; exit codes 0 done, 1 refused, 2 usage or no server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..kernel.text import counted
from .options import Unusable, answer_of, of_a_server, of_a_server_by_admin, tell, write_private

if TYPE_CHECKING:
    from .server import RunningServer

_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}
_as_json = click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")


@click.command("export", context_settings=_SETTINGS)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Where it goes, - for standard output; without it to SANDBOX.sandbox.",
)
@click.option("--history", is_flag=True, help="With the steps that are kept, so that earlier moments can be had.")
@click.option("--requests", is_flag=True, help="With the requests that are kept, as `record` does.")
@click.option("--no-secrets", is_flag=True, help="Without signing keys, digests of API keys and saved replies.")
@of_a_server
@_as_json
def export(
    output: Path | None,
    history: bool,
    requests: bool,
    no_secrets: bool,
    server: str,
    sandbox: str,
    admin_key: str | None,
    as_json: bool,
) -> None:
    """Write a sandbox to one file, which `import` and `serve --restore` read."""

    async def asked(running: RunningServer) -> bytes:
        return await running.download("/export", {"history": history, "requests": requests, "secrets": not no_secrets})

    file = answer_of(server, sandbox, admin_key, asked)
    to = output or Path(f"{sandbox}.sandbox")
    if str(to) == "-":
        sys.stdout.buffer.write(file)
        return
    write_private(to, file)
    holds = "no secrets" if no_secrets else "signing keys and saved replies: keep it to yourself"
    tell(
        {"sandbox": sandbox, "file": str(to), "bytes": len(file), "secrets": not no_secrets},
        f"{to} is the sandbox {sandbox}, {len(file):,} bytes. It holds {holds}.",
        as_json=as_json,
    )


@click.command("import", context_settings=_SETTINGS)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True, path_type=Path))
@click.option("--deliver", is_flag=True, help="Deliver new events to webhooks.")
@click.option("--drop-unfit", is_flag=True, help="Leave out records that do not fit the contract, and the history.")
@of_a_server_by_admin
@_as_json
def import_(
    file: Path, deliver: bool, drop_unfit: bool, server: str, sandbox: str, admin_key: str | None, as_json: bool
) -> None:
    """Replace a sandbox of a running server with the one in FILE (- for standard input)."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror or error}.") from None

    async def asked(running: RunningServer) -> dict[str, Any]:
        query = {"deliver": deliver, "drop_unfit": drop_unfit}
        found: dict[str, Any] = await running.upload("/import", data, query)
        return found

    made = answer_of(server, sandbox, admin_key, asked, may_be_new=True)
    shown, was, left_out = made["sandbox"], made["replaced"], made["left_out"]
    journal = "stays" if was["keeps_requests"] else "is replaced by that of the file"
    text = (
        f"{shown['name']} is the sandbox of {file}: step {shown['step']}, {counted(shown['records'], 'record')}, "
        f"{shown['now']}.\n"
        f"It replaces step {was['step']}, {counted(was['records'], 'record')}, {was['now']}. "
        f"Its journal of {counted(was['requests'], 'request')} {journal}.\n"
        f"  address   {shown['base_url']}\n"
        f"  API key   {shown['credentials']['private_key']}"
    )
    if left_out is not None:
        from ..files.admitting import LeftOut

        text += "\nLeft out: " + "\n  ".join((f"{LeftOut(**left_out)}.", *left_out["reasons"]))
    tell(made, text, as_json=as_json)
