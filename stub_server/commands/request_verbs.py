"""The verb `requests`: what came to a sandbox, listed, shown whole, exported, verified and forgotten."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from .options import Number, Unusable, aimed, answer_of, of_a_server, tell, write_private

_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
_FILTERS = (
    click.option("--operation", "operationId", metavar="NAME", help="Only requests to this operationId."),
    click.option("--method", metavar="METHOD", help="Only requests of this method."),
    click.option("--path", metavar="GLOB", help="Only requests to such a path, without the sandbox's prefix."),
    click.option("--status", metavar="404|4xx", help="Only requests answered so."),
    click.option("--code", metavar="CODE", help="Only requests refused with this error code."),
    click.option("--caller", metavar="ID|KIND", help="Only of this API key, user or merchant, or kind of caller."),
    click.option("--since", metavar="ISO8601", help="Only from this instant of the sandbox clock on."),
    click.option("--until", metavar="ISO8601", help="Only up to this instant of the sandbox clock."),
    click.option("--contains", metavar="TEXT", help="Only with this text in path, query or a body."),
    click.option("--control", is_flag=True, help="Also requests to the control surface."),
)
F = TypeVar("F", bound=Callable[..., Any])


def _filters(command: F) -> F:
    """The options that say which requests are meant, by the names of the query."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


@click.group(context_settings=_SETTINGS)
def requests() -> None:
    """List, show, export, verify and delete the requests that a sandbox received.

    Exit code 1 if the sandbox refuses or an expectation does not hold, 2 if no sandbox answers.
    """


@requests.command("list", context_settings=_SETTINGS)
@_filters
@click.option("--limit", type=Number(1), default=20, help="At most so many.")
@of_a_server
@_as_json
def list_requests(limit: int, server: str, sandbox: str, admin_key: str | None, as_json: bool, **filters: Any) -> None:
    """List requests, the newest first."""
    from . import requests as journal

    query = _query(filters)
    found = answer_of(server, sandbox, admin_key, lambda running: journal.listed(running, query, limit))
    tell(found, journal.told_list(found), as_json=as_json)


@requests.command("show", context_settings=_SETTINGS)
@click.argument("ident", metavar="ID|last")
@of_a_server
@_as_json
def show_request(ident: str, server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """Show a request with its answer, what it did and how to send it again.

    ID is the X-Request-Id of its answer; last is the newest request to the API.
    """
    from . import requests as journal

    found = answer_of(server, sandbox, admin_key, lambda running: journal.shown(running, ident))
    if found is None:
        raise click.ClickException("no request is kept.")
    tell(found, journal.told(found["request"], aimed(server, sandbox)), as_json=as_json)


@requests.command("har", context_settings=_SETTINGS)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Where it goes, - for standard output; without it to SANDBOX.har.",
)
@_filters
@of_a_server
@_as_json
def export_har(
    output: Path | None, server: str, sandbox: str, admin_key: str | None, as_json: bool, **filters: Any
) -> None:
    """Write requests to a file as an HTTP archive (HAR 1.2), the oldest first."""
    from . import requests as journal

    query = _query(filters)
    file = answer_of(server, sandbox, admin_key, lambda running: running.download("/requests.har", query, journal.HAR))
    to = output or Path(f"{sandbox}.har")
    if str(to) == "-":
        sys.stdout.buffer.write(file)
        return
    write_private(to, file)
    told = f"{to} holds the requests of {sandbox}, {len(file):,} bytes."
    tell({"sandbox": sandbox, "file": str(to), "bytes": len(file)}, told, as_json=as_json)


@requests.command("verify", context_settings=_SETTINGS)
@click.argument("expected", metavar="JSON|@FILE|-")
@of_a_server
@_as_json
def verify_requests(expected: str, server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """Check the requests against an expectation, as POST /_sandbox/requests/verify takes it.

    Such as '{"request": {"operationId": "createPixOrder"}, "times": {"exactly": 1}}', @FILE for JSON in a file or - for
    standard input. Exit code 1 when it does not hold, with the requests that come nearest, or when it names an
    operation or a method that does not exist.
    """
    from . import requests as journal

    body = _read(expected)
    report = answer_of(server, sandbox, admin_key, lambda running: journal.verified(running, body))
    for warning in report["warnings"]:
        click.echo(f"Warning: {journal.WARNINGS.get(warning, warning)}", err=True)
    tell(report, journal.told_report(report), as_json=as_json)
    sys.exit(0 if report["ok"] else 1)


@requests.command("clear", context_settings=_SETTINGS)
@of_a_server
@_as_json
def clear_requests(server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """Delete every request from the journal. Their changes remain."""
    answer_of(server, sandbox, admin_key, lambda running: running.control("DELETE", "/requests"))
    tell({"deleted": "all"}, "Every request is deleted.", as_json=as_json)


def _query(filters: dict[str, Any]) -> dict[str, Any]:
    """The filters that were given."""
    return {name: value for name, value in filters.items() if value not in (None, False)}


def _read(expected: str) -> dict[str, Any]:
    """What was expected, as an object. Raises UsageError for what is none, Unusable for a file that cannot be read."""
    try:
        if expected == "-":
            expected = sys.stdin.read()
        elif expected.startswith("@"):
            expected = Path(expected[1:]).read_text(encoding="utf-8")
        body = json.loads(expected)
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()  # what cannot be sent is no JSON
    except OSError as error:
        raise Unusable(f"{expected[1:]}: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise click.UsageError("What is expected is a JSON object, @FILE with one, or - for standard input.")
    return body
