"""The requests that came to the sandbox, and one of them: what was sent, what it did, and why it
was refused.
"""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

from flask import Response, abort, g, render_template, request

from ..contract.secrets import REDACTED
from ..contract.source import JsonObject
from ..server.journal.entries import OF_THE_CONNECTION
from ..server.layers.inside import Question
from ..server.request import CONTROL
from .actions import go, kept, plain_text, show_done, steps_of
from .addresses import here
from .filters import Change, changes, in_one_line, pretty
from .forms import listed
from .sessions import ADMIN_KEY
from .site import pages

_LISTED = 50
_FIRST = ("status", "operationId", "path", "contains", "warned")
"""The filters that are in sight."""
_SHOWN = 8  # records and deliveries of a request that are shown whole
_ID = re.compile(r"req_[0-9a-f]{1,40}").fullmatch
_SHOWN_IN_PART = (
    "_sandbox/requests/",
    "_sandbox/inbox/",
    "_sandbox/events",
    "_sandbox/records/",
    "v2/",
)
_CHOOSING = ("id", "limit", "page")  # parameters of lists, of which none waits


class Touched(NamedTuple):
    """A record that a request changed, and in which members."""

    record: JsonObject
    page: int  # of its history, a version on each
    body: Any
    differences: list[Change]


@pages.get("/requests")
def requests() -> str:
    """The journal, newest first."""
    found = listed(f"{CONTROL}/requests", "listRequests", _LISTED, first=_FIRST, requests=[])
    har = here("/console/requests.har", {field.name: field.value for field in found["filters"]})
    return render_template(
        "console/requests.html",
        har=har,
        key=None if found["requests"] else g.client.credentials["private_key"],
        **found,
    )


@pages.get("/requests/<ident>")
def one_request(ident: str) -> str:
    """One request with all that is known of it."""
    shown = kept(ident)
    steps = steps_of(shown, 100) if shown["step"] else []
    return render_template(
        "console/request.html",
        shown=shown,
        steps=steps,
        touched=[each for step in steps for each in _touched(step)][:_SHOWN],
        deliveries=[_delivery(each) for each in shown["deliveries"][:_SHOWN]],
    )


@pages.get("/whole/<path:path>")
def whole(path: str) -> Response:
    """What a control or an operation answers, of which a page shows the beginning; with
    `of=request.body` that member alone.
    """
    if not path.startswith(_SHOWN_IN_PART):
        abort(404, "No page shows only the beginning of this.")
    found = g.client.get(f"/{path}", {name: request.args.get(name) for name in _CHOOSING})
    member = request.args.get("of")
    for name in member.split(".") if member else ():
        found = found.get(name) if isinstance(found, dict) else None
    return plain_text(pretty(found))


@pages.post("/requests/<ident>/send")
def send_request(ident: str) -> Response:
    """Send a request again that the journal has kept whole."""
    shown = kept(ident)
    return _send([shown | shown["request"]] if shown["curl"] else [])


@pages.post("/requests/<ident>/nearest")
def send_nearest(ident: str) -> Response:
    """Send the nearest request, and what it needs before."""
    explanation = kept(ident)["explanation"] or {}
    return _send((explanation.get("nearest") or {}).get("calls", []))


def _send(calls: list[JsonObject]) -> Response:
    """Send calls of the journal until one is refused; the page of the last one shows what
    became of it.
    """
    reply = None
    for call in calls:
        reply = g.client.send(_question(call))
        if reply.is_refused:
            break
    if reply is None:
        return go(request.path.rpartition("/")[0])
    is_kept = _ID(reply.request_id) is not None
    return show_done(
        reply, f"/console/requests/{reply.request_id}" if is_kept else "/console/requests"
    )


def _question(call: JsonObject) -> Question:
    """A call of the journal with the ready token, without what was of its connection and what the
    journal left out.
    """
    body = b"" if call["body"] is None else in_one_line(call["body"]).encode()
    headers = {
        name: value
        for name, value in call["headers"].items()
        if name not in (*OF_THE_CONNECTION, ADMIN_KEY) and REDACTED not in value
    }
    return Question(call["method"], call["path"], call["query"], headers, body)


# -- what a request did


def _touched(step: JsonObject) -> Iterator[Touched]:
    """The records of a step with what it changed in them."""
    for change in step["changes"][:_SHOWN]:
        path = f"{CONTROL}/records/{change['resource']}/{change['id']}/history"
        versions = g.client.get(path, {"limit": 100})["versions"]
        newer = [*takewhile(lambda each: each["step"] != step["step"], versions)]
        bodies = [each["body"] for each in versions[len(newer) :]]
        now, was, *_ = [*bodies, None, None]
        yield Touched(change, len(newer) + 1, now, changes(was, now))


def _delivery(ident: str) -> JsonObject:
    """What has become of a delivery."""
    found = g.client.find(f"{CONTROL}/records/webhook_logs/{ident}/history", {"limit": 1})
    newest = found["versions"][0]["body"] if found else None
    return {"id": ident, **(newest or {})}
