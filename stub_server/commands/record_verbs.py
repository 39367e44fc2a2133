"""The verbs `record` and `replay`; exit codes 0 done or the same, 1 refused or another answer, 2 wrong usage."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from .options import Unusable, answer_of, of_a_server, overlay_option, printable, tell

_MOST_IDS = 20  # of requests that were left aside for one reason
_ASIDE = {
    "fault_rules": "about fault rules or answered by them (a recording has none)",
    "rate_limit": "refused by the rate limit (a replay is as fast as it can)",
    "no_answer": "without an answer (nothing to compare)",
    "body_not_kept": "with a body that was too large, broken off, or a file (a recording has none of these)",
    "connection": "refused for how they came over the connection (a recording has none)",
    "other_machines": "certifying a receiver (no other machine is asked)",
    "earlier_requests": "verifying requests (the journal before the recording is not known)",
    "earlier_snapshots": "about snapshots from before the recording (it does not hold them)",
    "other_sandboxes": "about other sandboxes (a recording is of one)",
}
_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}
_as_json = click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")


@click.command(context_settings=_SETTINGS)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Where it goes, - for standard output; without it to SANDBOX.stub.",
)
@click.option("--no-secrets", is_flag=True, help="Without signing keys and the replies saved before.")
@of_a_server
@_as_json
def record(
    output: Path | None, no_secrets: bool, server: str, sandbox: str, admin_key: str | None, as_json: bool
) -> None:
    """Write the requests that a sandbox of a running server keeps, and its state before them, to one file."""
    file = answer_of(
        server,
        sandbox,
        admin_key,
        lambda running: running.download("/export", {"requests": True, "secrets": not no_secrets}),
    )
    to = output or Path(f"{sandbox}.stub")
    if str(to) == "-":
        sys.stdout.buffer.write(file)
        return
    try:
        to.write_bytes(file)
    except OSError as error:
        raise Unusable(f"{to}: {error.strerror or error}.") from None
    from ..files.recording import about_of

    about = about_of(file)
    count, left_out = about["recorded"], about["left_out"]
    text = f"{to} holds {count:,} requests to the sandbox {sandbox}, {len(file):,} bytes."
    if left_out:
        text += (
            f" {left_out:,} more cannot be sent again: they are older than the steps that are kept, not whole, or came "
            "before the sandbox went back to an older snapshot or request."
        )
    if not no_secrets:
        text += " It holds signing keys: keep it to yourself."
    done = {"sandbox": sandbox, "file": str(to), "bytes": len(file), "requests": count, "left_out": left_out}
    tell(done | {"secrets": not no_secrets}, text, as_json=as_json)


@click.command(context_settings=_SETTINGS)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True, path_type=Path))
@overlay_option("OpenAPI Overlay of the recording's server; repeatable.")
@click.option(
    "--scenario",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    allow_from_autoenv=False,  # a server's may be set
    metavar="FILE",
    help="The scenario file of the recording's server, if it had one of its own.",
)
@_as_json
def replay(file: Path, overlays: tuple[Path, ...], scenario: Path | None, as_json: bool) -> None:
    """Send the requests of FILE (- for standard input) again to a fresh sandbox, and compare every answer.

    Left aside are fault rules and answers that they made, refusals of the rate limit, requests without an answer,
    certifications and verifications, what was refused for a body that was not kept or for the connection, and what was
    asked of other sandboxes and of snapshots from before the recording: it does not hold what they depend on.

    No server is needed. Exit code 0 if all other answers are the same, 1 with a diff of the first that is not, 2 for a
    file that cannot be replayed.
    """
    import asyncio

    from ..contract.source import ContractError
    from ..files.package import BadFile
    from ..replay.session import replay as replayed
    from ..scenarios.scenario import ScenarioError

    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        outcome = asyncio.run(replayed(data, overlays, scenario))
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror or error}.") from None
    except BadFile as error:
        raise Unusable("\n  ".join((str(error), *(error.reasons if len(error.reasons) > 1 else ())))) from None
    except (ContractError, ScenarioError) as error:
        raise Unusable(str(error)) from None
    request = outcome.request
    shown = None if request is None else {name: request[name] for name in ("id", "method", "path", "query")}
    aside = sum(map(len, outcome.aside.values()))
    told: dict[str, Any] = {"ok": request is None, "requests": outcome.requests, "same": outcome.compared}
    reasons = {name: {"count": len(idents), "ids": idents[:_MOST_IDS]} for name, idents in outcome.aside.items()}
    text = f"{outcome.compared:,} answers of {outcome.requests:,} requests are the same"
    text += f", {aside:,} {'was' if aside == 1 else 'were'} left aside: {_reasons(outcome.aside)}." if aside else "."
    if request is not None:
        query = f"?{request['query']}" if request["query"] else ""
        asked = printable(f"{request['id']} {request['method']} {request['path']}{query}")
        text += f"\n{asked} is answered differently:\n{outcome.diff}"
    told |= {"aside": aside, "aside_by_reason": reasons, "request": shown, "diff": outcome.diff or None}
    tell(told, text, as_json=as_json)
    sys.exit(0 if request is None else 1)


def _reasons(aside: Mapping[str, Sequence[str]]) -> str:
    """Why requests were left aside, and how many each."""
    return ", ".join(f"{len(idents):,} {_ASIDE[name]}" for name, idents in aside.items())
