"""The verb `replay`; exit codes 0 the same answers, 1 another answer, 2 a file that cannot be replayed or usage."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import click

from .options import (
    EXISTING,
    EXISTING_OR_STDIN,
    Number,
    Unusable,
    json_option,
    overlay_option,
    printable,
    read_file,
    show,
    table,
    verb,
)  # fmt: skip

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
@click.option("--list", "lists", is_flag=True, help="List the requests, and send none.")
@click.option("--until", type=Number(1), metavar="N", help="With --serve: the state before request N.")
@click.option("--serve", "serves", is_flag=True, help="Serve the recorded sandbox, and send none.")
@click.option("--port", type=Number(0, 65_535), default=4600, help="With --serve: port; 0 picks a free one.")
@json_option
def replay(
    file: Path,
    overlays: tuple[Path, ...],
    scenario: Path | None,
    lists: bool,
    until: int | None,
    serves: bool,
    port: int,
    as_json: bool,
) -> None:
    """Send the requests of FILE (- for standard input) to a fresh sandbox, and compare every answer.

    It skips, and counts by reason, what the recording cannot repeat: fault rules and their answers, refusals by the
    rate limit, the connection or credentials, requests without an answer or a body, certifications and verifications,
    and requests about sandboxes and earlier snapshots.

    Of a recording of another contract all requests are sent, and the answers that differ are counted by operation.

    --list prints the requests. --until N --serve serves the sandbox as it was before request N.

    No server is needed. Exit code 0 if all compared answers are the same, 1 with a diff of the first that is not, 2 for
    a file that cannot be replayed.
    """
    import asyncio

    from ..app import data_dir
    from ..files.exports import outline
    from ..files.fitting import Shapes
    from ..files.package import BadFile
    from ..replay.replaying import replay as replayed
    from ..replay.replaying import settings_of

    if until is not None and not serves:
        raise click.UsageError("--until goes with --serve.")
    data = read_file(file)
    try:
        if not (lists or serves):
            outcome = asyncio.run(replayed(data, overlays, scenario))
            show(_report(outcome), _text(outcome), as_json=as_json)
            sys.exit(0 if outcome.request is None else 1)
        _, about, requests = outline(data, Shapes(data_dir("fixtures")).check)
        if until is not None and until > len(requests):
            raise Unusable(f"The recording has {len(requests)} requests.")
        if serves:
            _serve(data, until, settings_of(about, len(requests), overlays, scenario), port)
        else:
            _list(requests, as_json=as_json)
    except BadFile as error:
        raise Unusable("\n  ".join((str(error), *(error.reasons if len(error.reasons) > 1 else ())))) from None


def _report(outcome: "Outcome") -> dict[str, Any]:
    request, contract = outcome.request, outcome.contract
    report: dict[str, Any] = {"ok": request is None, "requests": outcome.requests, "same": outcome.compared}
    report["aside"] = sum(map(len, outcome.skipped.values()))
    report["aside_by_reason"] = {
        name: {"count": len(idents), "ids": idents[:_MOST_IDS]} for name, idents in outcome.skipped.items()
    }
    report["request"] = None if request is None else {n: request[n] for n in ("id", "method", "path", "query")}
    report["diff"] = outcome.diff or None
    report["contract"] = None
    if contract is not None:
        report["contract"] = dict(contract) | {"differing": outcome.differing}
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
        each = ", ".join(f"{name} {len(idents)}" for name, idents in sorted(outcome.differing.items()))
        text += f"\n  Other answers: {printable(each)}." if each else ""
    if outcome.request is not None:
        asked = printable(f"{outcome.request['id']} {outcome.request['method']} {_target(outcome.request)}")
        text += f"\n{asked} is answered differently:\n{outcome.diff}"
    return text


def _serve(data: bytes, until: int | None, settings: Any, port: int) -> None:
    """Serve the sandbox of a recording, as it was before a request or after all. Raises BadFile, UnusableInput."""
    from dataclasses import replace

    from .. import serving
    from ..files.exports import cut_before

    with NamedTemporaryFile(suffix=".stub") as cut:
        if until is None:
            cut.write(data)
        else:
            cut_before(cut, data, until)
        cut.flush()
        serving.serve(
            replace(
                settings,
                host="127.0.0.1",
                port=port,
                base_url=None,
                allow_hosts=(),
                admin_key=None,
                restore=Path(cut.name),
            )
        )


def _list(requests: Sequence[Request], *, as_json: bool) -> None:
    members = ("id", "method", "path", "query", "status", "code", "operation")
    rows = [
        (f"{n:>5}", r["method"], f"{_target(r)}  {r['status']} {r['code'] or ''}") for n, r in enumerate(requests, 1)
    ]
    answer = [{"number": n, **{name: r[name] for name in members}} for n, r in enumerate(requests, 1)]
    show(answer, table(rows), as_json=as_json)


def _target(request: Request) -> str:
    return str(request["path"]) + (f"?{request['query']}" if request["query"] else "")
