"""The verbs `record` and `replay`; exit codes 0 done or the same, 1 refused or another answer, 2 wrong usage."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import click

from ..kernel.text import counted
from .options import Number, Unusable, answer_of, of_a_server, overlay_option, printable, tell, write_private

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
    """Write a recording: the requests of a sandbox's journal and the state before them."""
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
    write_private(to, file)
    from ..app import data_dir
    from ..files.fitting import Shapes
    from ..files.recording import outline

    about = outline(file, Shapes(data_dir("fixtures")).check).about
    count, left_out = about["recorded"], about["left_out"]
    text = f"{to} holds {counted(count, 'request')} to the sandbox {sandbox}, {len(file):,} bytes."
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
@click.option("--list", "lists", is_flag=True, help="List the requests instead.")
@click.option("--show", type=Number(1), metavar="N", help="Show request N and its answer instead.")
@click.option("--until", type=Number(1), metavar="N", help="With --serve: the state before request N.")
@click.option("--serve", "serves", is_flag=True, help="Serve the sandbox as it was instead.")
@click.option("--port", type=Number(0, 65_535), default=4600, help="With --serve: where; 0 picks a free one.")
@_as_json
def replay(
    file: Path,
    overlays: tuple[Path, ...],
    scenario: Path | None,
    lists: bool,
    show: int | None,
    until: int | None,
    serves: bool,
    port: int,
    as_json: bool,
) -> None:
    """Send the requests of FILE (- for standard input) to a fresh sandbox, and compare every answer.

    It skips, and counts by reason, what the recording cannot repeat: fault rules and their answers, refusals by the
    rate limit or the connection, requests without an answer or a body, certifications and verifications, and requests
    to other sandboxes and earlier snapshots.

    A recording of another contract is converted, and all its requests are sent. Answers that differ are listed by
    operation: those that are the same once converted, and the others.

    --list and --show print the requests. --until N --serve serves the sandbox as it was before request N.

    No server is needed. Exit code 0 if all compared answers are the same, 1 with a diff of the first that is not, 2 for
    a file that cannot be replayed.
    """
    import asyncio

    from ..contract.source import ContractError
    from ..files.package import BadFile
    from ..replay.replaying import replay as replayed
    from ..scenarios.scenario import ScenarioError

    if until is not None and not serves:
        raise click.UsageError("--until goes with --serve.")
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        if lists or show is not None or serves:
            _opened(data, show, until, overlays, scenario, port, serves=serves, as_json=as_json)
            return
        outcome = asyncio.run(replayed(data, overlays, scenario))
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror or error}.") from None
    except BadFile as error:
        raise Unusable("\n  ".join((str(error), *(error.reasons if len(error.reasons) > 1 else ())))) from None
    except (ContractError, ScenarioError) as error:
        raise Unusable(str(error)) from None
    request = outcome.request
    shown = None if request is None else {name: request[name] for name in ("id", "method", "path", "query")}
    aside = sum(map(len, outcome.skipped.values()))
    told: dict[str, Any] = {"ok": request is None, "requests": outcome.requests, "same": outcome.compared}
    reasons = {name: {"count": len(idents), "ids": idents[:_MOST_IDS]} for name, idents in outcome.skipped.items()}
    text = f"{outcome.compared:,} answers of {outcome.requests:,} requests are the same"
    text += f", {aside:,} {'was' if aside == 1 else 'were'} left aside: {_reasons(outcome.skipped)}." if aside else "."
    if outcome.contract is not None and (outcome.converted or outcome.differing):
        text += "\n" + _other_contract(outcome.contract, outcome.converted, outcome.differing)
    if request is not None:
        query = f"?{request['query']}" if request["query"] else ""
        asked = printable(f"{request['id']} {request['method']} {request['path']}{query}")
        text += f"\n{asked} is answered differently:\n{outcome.diff}"
    told |= {"aside": aside, "aside_by_reason": reasons, "request": shown, "diff": outcome.diff or None}
    told["contract"] = None
    if outcome.contract is not None:
        told["contract"] = dict(outcome.contract) | {"converted": outcome.converted, "differing": outcome.differing}
    tell(told, text, as_json=as_json)
    sys.exit(0 if request is None else 1)


def _other_contract(
    contract: Mapping[str, str], converted: Mapping[str, Sequence[str]], differing: Mapping[str, Sequence[str]]
) -> str:
    """Which answers to a recording of another contract differ, by operation."""
    named = f"{contract['version']}, {contract['digest'][:12]}" if contract["version"] else "it does not say which"
    text = f"The recording is of another contract ({named})."
    for what, found in (("the same once converted", converted), ("not the same even then", differing)):
        if found:
            each = ", ".join(printable(f"{name} {len(idents)}") for name, idents in sorted(found.items()))
            text += f"\n  {what}: {each}"
    return text


def _opened(
    data: bytes,
    show: int | None,
    until: int | None,
    overlays: tuple[Path, ...],
    scenario: Path | None,
    port: int,
    *,
    serves: bool,
    as_json: bool,
) -> None:
    """List the requests of a recording, show one, or serve the state before one. Raises BadFile."""
    from ..app import data_dir
    from ..files.fitting import Shapes
    from ..files.recording import cut_before, outline

    _, about, requests = outline(data, Shapes(data_dir("fixtures")).check)
    number = show if show is not None else until
    if number is not None and number > len(requests):
        raise Unusable(f"The recording has {len(requests)} requests.")
    if serves:
        from dataclasses import replace

        from .. import serving
        from ..replay.replaying import settings_of

        settings = settings_of(about, len(requests), overlays, scenario)
        with NamedTemporaryFile(suffix=".stub") as cut:
            if until is None:
                cut.write(data)
            else:
                cut_before(cut, data, until)
            cut.flush()
            as_it_was = replace(
                settings, host="127.0.0.1", port=port, base_url=None, admin_key=None, restore=Path(cut.name)
            )
            try:
                serving.serve(as_it_was)
            except serving.CannotServe as error:
                raise Unusable(str(error)) from None
        return
    if show is not None:
        request = requests[show - 1]
        tell(request, _shown(request), as_json=as_json)
        return
    rows = [
        printable(f"{n:>5}  {r['method']:<6} {_target(r)}  {r['status']} {r['code'] or ''}".rstrip())
        for n, r in enumerate(requests, 1)
    ]
    members = ("id", "method", "path", "query", "status", "code", "operation")
    tell(
        [{"number": n, **{name: r[name] for name in members}} for n, r in enumerate(requests, 1)],
        "\n".join(rows),
        as_json=as_json,
    )


def _target(request: Mapping[str, Any]) -> str:
    return str(request["path"]) + (f"?{request['query']}" if request["query"] else "")


def _shown(request: Mapping[str, Any]) -> str:
    """A request and its answer, as they went."""

    def text(latin: str | None) -> str:
        return (latin or "").encode("latin-1").decode("utf-8", "replace")

    asked, answered = (
        [printable(f"{name}: {value}") for name, value in request[k]] for k in ("headers", "answer_headers")
    )
    first = printable(f"{request['method']} {_target(request)}")
    return "\n".join(
        (first, *asked, "", text(request["body"]), "", str(request["status"]), *answered, "", text(request["answer"]))
    )


def _reasons(aside: Mapping[str, Sequence[str]]) -> str:
    """Why requests were left aside, and how many each."""
    return ", ".join(f"{len(idents):,} {_ASIDE[name]}" for name, idents in aside.items())
