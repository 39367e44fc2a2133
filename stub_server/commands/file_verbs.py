"""The verbs `export`, `record` and `import`; exit codes 0 done, 1 refused, 2 usage or no server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..kernel.text import counted
from .options import (
    EXISTING_OR_STDIN,
    Target,
    asks_sandbox,
    asks_sandbox_as_admin,
    output_option,
    read_file,
    verb,
    write_private,
)  # fmt: skip


@verb()
@output_option("sandbox")
@click.option("--history", is_flag=True, help="With the stored steps, so that earlier states can be restored.")
@click.option("--requests", is_flag=True, help="With the requests of the journal, as `record` does.")
@click.option("--no-secrets", is_flag=True, help="Without signing keys, digests of API keys and saved replies.")
@asks_sandbox
def export(target: Target, output: Path | None, history: bool, requests: bool, no_secrets: bool) -> None:
    """Write a sandbox to one file, which `import` and `serve --restore` read."""
    to = output or Path(f"{target.sandbox}.sandbox")
    file = _download(target, to, history=history, requests=requests, secrets=not no_secrets)
    if str(to) == "-":
        return
    content = "no secrets" if no_secrets else "signing keys and saved replies: keep it to yourself"
    answer = {"sandbox": target.sandbox, "file": str(to), "bytes": len(file), "secrets": not no_secrets}
    target.show(answer, f"{to} is the sandbox {target.sandbox}, {len(file):,} bytes. It contains {content}.")


@verb()
@output_option("stub")
@click.option("--no-secrets", is_flag=True, help="Without signing keys and the replies saved before.")
@asks_sandbox
def record(target: Target, output: Path | None, no_secrets: bool) -> None:
    """Write a recording: the requests of a sandbox's journal and the state before them."""
    to = output or Path(f"{target.sandbox}.stub")
    file = _download(target, to, requests=True, secrets=not no_secrets)
    if str(to) == "-":
        return
    from ..app import data_dir
    from ..files.fitting import Shapes
    from ..files.recording import outline

    about = outline(file, Shapes(data_dir("fixtures")).check).about
    count, left_out = about["recorded"], about["left_out"]
    text = f"{to} contains {counted(count, 'request')} to the sandbox {target.sandbox}, {len(file):,} bytes."
    if left_out:
        text += (
            f" {left_out:,} more cannot be sent again: they are older than the stored steps, not whole, or came before "
            "the sandbox went back to an older snapshot or request."
        )
    if not no_secrets:
        text += " It contains signing keys: keep it to yourself."
    done = {"sandbox": target.sandbox, "file": str(to), "bytes": len(file), "requests": count, "left_out": left_out}
    target.show(done | {"secrets": not no_secrets}, text)


def _download(target: Target, to: Path, **query: bool) -> bytes:
    """Write an export of the sandbox to a file, and return its bytes."""
    file: bytes = target.ask(lambda running: running.download("/export", query))
    write_private(to, file)
    return file


@verb("import")
@click.argument("file", type=EXISTING_OR_STDIN)
@click.option("--deliver", is_flag=True, help="Deliver new events to webhooks.")
@click.option("--drop-unfit", is_flag=True, help="Leave out records that do not fit the contract, and the history.")
@asks_sandbox_as_admin
def import_(target: Target, file: Path, deliver: bool, drop_unfit: bool) -> None:
    """Replace a sandbox of a running server with the one in FILE (- for standard input)."""
    data = read_file(file)

    async def asked(running: Any) -> Any:
        from ..files.package import MEDIA

        query = {"deliver": deliver, "drop_unfit": drop_unfit}
        return await running.control("POST", "/import", content=data, params=query, headers={"Content-Type": MEDIA})

    made = target.ask(asked, may_be_new=True)
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
    target.show(made, text)
