"""The verb `replay`; exit codes 0 the same answers, 1 another answer, 2 a file that cannot be replayed or usage."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import (
    EXISTING,
    EXISTING_OR_STDIN,
    Unusable,
    json_option,
    overlay_option,
    printable,
    read_file,
    show,
    verb,
)

if TYPE_CHECKING:
    from ..replay.replaying import Outcome

_MOST_IDS = 20  # of the requests that were skipped for one reason
_SKIPPED = {
    "fault_rules": "about fault rules or answered by them (a recording has none)",
    "rate_limit": "refused by the rate limit (a replay is as fast as it can)",
    "no_answer": "without an answer (nothing to compare)",
    "body_not_kept": "with a body that was too large, broken off, or a file (a recording has none of these)",
    "connection": "refused for how they came over the connection (a recording has none)",
    "other_machines": "certifying a receiver (no other machine is asked)",
    "earlier_requests": "verifying requests (the journal before the recording is not known)",
    "earlier_snapshots": "about snapshots from before the recording (it does not have them)",
    "other_sandboxes": "about sandboxes as a whole (a recording is of one)",
    "credentials": "refused for their credentials (a recording has none)",
}
Request = Mapping[str, Any]


@verb(short_help="Send a recording again, and compare the answers.")
@click.argument("file", type=EXISTING_OR_STDIN)
@overlay_option("OpenAPI Overlay of the recording's server; repeatable.")
@click.option(
    "--scenario",
    type=EXISTING,
    allow_from_autoenv=False,  # a server's may be set
    metavar="FILE",
    help="The scenario file of the recording's server, if it had one of its own.",
)
@json_option
def replay(file: Path, overlays: tuple[Path, ...], scenario: Path | None, as_json: bool) -> None:
    """Send the requests of FILE (- for standard input) to a fresh sandbox, and compare every answer.

    It skips, and counts by reason, what the recording cannot repeat: fault rules and their answers, refusals by the
    rate limit, the connection or credentials, requests without an answer or a body, certifications and verifications,
    and requests about sandboxes and earlier snapshots.

    The answers that differ are counted by operation.

    No server is needed; `serve --restore FILE` serves the recorded sandbox. Exit code 0 if all compared answers are the
    same, 1 with a diff of the first that is not, 2 for a file that cannot be replayed.
    """
    import asyncio

    from ..files.package import BadFile
    from ..replay.replaying import replay as replayed

    try:
        outcome = asyncio.run(replayed(read_file(file), overlays, scenario))
    except BadFile as error:
        raise Unusable("\n  ".join((str(error), *(error.reasons if len(error.reasons) > 1 else ())))) from None
    show(_report(outcome), _text(outcome), as_json=as_json)
    sys.exit(0 if outcome.request is None else 1)


def _report(outcome: "Outcome") -> dict[str, Any]:
    request, contract = outcome.request, outcome.contract
    report: dict[str, Any] = {"ok": request is None, "requests": outcome.requests, "same": outcome.compared}
    report["aside"] = sum(map(len, outcome.skipped.values()))
    report["aside_by_reason"] = {
        name: {"count": len(idents), "ids": idents[:_MOST_IDS]} for name, idents in outcome.skipped.items()
    }
    report["request"] = None if request is None else {n: request[n] for n in ("id", "method", "path", "query")}
    report["diff"] = outcome.diff or None
    report["differing"], report["contract"] = outcome.differing, contract
    return report


def _text(outcome: "Outcome") -> str:
    text = f"{outcome.compared:,} answers of {outcome.requests:,} requests are the same"
    if skipped := sum(map(len, outcome.skipped.values())):
        reasons = ", ".join(f"{len(idents):,} {_SKIPPED[name]}" for name, idents in outcome.skipped.items())
        text += f", {skipped:,} {'was' if skipped == 1 else 'were'} skipped: {reasons}"
    text += "."
    contract = outcome.contract
    if contract is not None:
        text += f"\nThe recording is of another contract ({contract['version']}, {contract['digest'][:12]})."
    if outcome.differing:
        each = ", ".join(f"{name} {len(idents)}" for name, idents in sorted(outcome.differing.items()))
        text += f"\nOther answers: {printable(each)}."
    if outcome.request is not None:
        asked = printable(f"{outcome.request['id']} {outcome.request['method']} {_target(outcome.request)}")
        text += f"\n{asked} is answered differently:\n{outcome.diff}"
    return text


def _target(request: Request) -> str:
    return str(request["path"]) + (f"?{request['query']}" if request["query"] else "")
