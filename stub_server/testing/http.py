"""What helpers send to a server, and read of its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from json import dumps
from typing import Any

import httpx2

from ..core.text import shortened

__tracebackhide__ = True  # a failed test shows the test's own lines
Json = dict[str, Any]
_WIDEST = 100  # characters of a value in a report


class Refused(Exception):
    """The server refused a request that a helper sent; `code` is that of the error, `response` the
    whole answer.
    """

    __module__ = "stub_server.testing"  # as tests import it

    def __init__(self, message: str, response: httpx2.Response | None = None) -> None:
        super().__init__(message)
        self.response, self.code = response, None
        if response is not None:
            self.code = body_of(response).get("code")


def done(answer: httpx2.Response) -> Any:
    """The body of an answer. Raises Refused with the server's reasons."""
    if answer.is_success:
        return None if answer.status_code == 204 else answer.json()
    asked, code = answer.request, body_of(answer).get("code", "")
    what = f"{asked.method} {asked.url.path} answered {answer.status_code} {code}".rstrip()
    raise Refused(f"{reasons(answer)}\n  ({what})", answer)


def reasons(answer: httpx2.Response) -> str:
    """Why the server refused a request: its message, and details that say more."""
    body = body_of(answer)
    summary = str(body.get("message", " ".join(answer.text.split())[:_WIDEST]))
    lines = [summary]
    for each in body.get("details", ()):
        if each["message"] not in summary:
            lines.append(f"  {each['field']}: {each['message']}")
    return "\n".join(lines)


def shown(answer: httpx2.Response, member: str) -> Json:
    """The record that an answer shows. Raises Refused, also for what no sandbox of this version
    answers.
    """
    try:
        found: Json = done(answer)[member]
        return found
    except (LookupError, TypeError, ValueError):
        raise Refused(
            f"{answer.url} answered without {member}: it is no sandbox of this version.", answer
        ) from None


def explained(request: Json) -> str:
    """How a request of the journal was answered; of one that was refused why, and what changes make
    the nearest that succeeds.
    """
    code, why = request["code"] or "", request["explanation"]
    text = f"{request['method']} {request['path']} answered {request['status']} {code}".rstrip()
    if why is None:
        return text
    text += f"\n  why: {why['summary']}"
    for change in (why["nearest"] or {"changes": ()})["changes"]:
        where, value = change["where"], change["to"]
        change_to = f"without {where}" if value is None else f"with {where}: {short(value)}"
        text += f"\n  succeeds {change_to}  ({change['why']})"
    return text


def body_of(answer: httpx2.Response) -> Json:
    """The body of an answer; empty where it is no object of JSON."""
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def short(value: Any) -> str:
    """A value as JSON in one line, cut where it is long."""
    return shortened(dumps(value, ensure_ascii=False), _WIDEST)


def instant(value: date | str) -> str:
    """An RFC 3339 date-time; of a date alone midnight in UTC, as of a date-time
    without an offset.
    """
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return str(value)  # the server says what it takes
    if found.tzinfo is None:
        return f"{found.isoformat()}Z"
    return found.isoformat()


def listed(names: Sequence[str]) -> list[str]:
    """Names as a list, also one alone."""
    if isinstance(names, str):
        return [names]
    return list(names)


def id_of(order: Json | str) -> str:
    """The id of an order, or the id itself. Raises Refused."""
    if isinstance(order, str):
        return order
    if not isinstance(order, Mapping) or "id" not in order:
        raise Refused(f"This is not an order, as it has no id: {short(order)}")
    return str(order["id"])
