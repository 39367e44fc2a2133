"""The verbs `requests` and `explain`: the requests that a sandbox received, and why one
was refused.
"""

import sys
from collections.abc import Callable
from urllib.parse import quote

import click

from ..core.members import given
from ..core.record import Body
from .options import json_argument, yaml_text
from .running_server import Refused, Target

_PAGE = 100


def show_request(target: Target, ident: str, commands: bool) -> None:
    """Show a request with its answer, what it did and how to send it again."""
    found = _one(target, ident, 1, commands, lambda _: True)
    if found is None:
        raise click.ClickException("the journal has no requests to the API.")
    target.show(found, _request_text(found["request"], target.flags))


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
    answer = _one(target, ident, _PAGE, commands, lambda request: (request["status"] or 0) >= 400)
    if answer is None:
        raise click.ClickException(f"none of the newest {_PAGE} requests was refused.")
    found = answer["request"]["explanation"]
    target.show(found, _explanation_text(answer["request"]))
    sys.exit(1 if found is not None and found["nearest"] is None else 0)


def _one(
    target: Target, ident: str, limit: int, commands: bool, is_wanted: Callable[[Body], bool]
) -> Body | None:
    """A request whole, by its id; for `last` the newest one that is wanted, or None."""
    if ident == "last":
        query = {"limit": limit, "commands": commands}
        newest = target.control("GET", "/requests", params=query)["requests"]
        ident = next((request["id"] for request in newest if is_wanted(request)), "")
    if not ident:
        return None
    found: Body = target.control("GET", f"/requests/{quote(ident, safe='')}")
    return found


# -- texts for people


def _request_text(request: Body, flags: str) -> str:
    """A request with its answer and what it did; `flags` name its sandbox."""
    shown = dict(request)
    curl, explanation = shown.pop("curl"), shown.pop("explanation")
    text = yaml_text(shown)
    if explanation is not None:
        advice = (
            f"`stub-server explain {request['id']}{flags}` shows the nearest request that succeeds."
        )
        text += f"\n\n{explanation['summary']}\n{advice}"
    if curl is not None:
        text += f"\n\n{curl}"
    return text


def _explanation_text(request: Body) -> str:
    head = f"{request['method']} {request['path']} was answered {request['status']}"
    found = request["explanation"]
    if found is None:
        return f"{head}: it was accepted."
    nearest = found["nearest"] or {"changes": [], "curl": "No request was found that succeeds."}
    reasons = given(contract=found["contract"], rule=found["rule"], state=found["state"])
    reasons["changes"] = nearest["changes"]
    title = f"{head} {request['code'] or ''} ({request['id']})"
    return f"{title}\n{found['summary']}\n\n{yaml_text(reasons)}\n\n{nearest['curl']}"
