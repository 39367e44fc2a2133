"""Any operation of either contract, to try: a form with a call that works, the answer beside it, and the code."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from flask import abort, g, render_template, request

from ..contract.document import Document
from ..contract.secrets import KEY_HEADERS
from ..server.layers.inside import Question, Reply
from ..server.request import CONTROL
from .attempt import Attempt
from .client import ASK, Refused
from .sheet import Sheet
from .shell import contracts, pages, this_sandbox

_OF_READERS = (
    "host", "origin", "sec-fetch-site", "authorization", "x-sandbox", *KEY_HEADERS,
)  # fmt: skip
"""Headers that decide what the reader of a page may see."""
_LONGEST = 300_000  # bytes of an answer that is shown whole


class Shown(NamedTuple):
    """An answer. Of one that is no text only its size is shown; `request` is None where the journal has none."""

    reply: Reply
    media: str
    content: Any
    text: str | None
    request: str | None


@pages.get("/try/<path:ident>")
def try_operation(ident: str) -> str:
    """The form with what works."""
    return _page(Attempt(_sheet(ident)), None)


@pages.post("/try/<path:ident>")
def send_operation(ident: str) -> str | tuple[str, int]:
    """Send what the form says, and show the answer beside it; with `only=code` the code alone."""
    attempt = Attempt(_sheet(ident), request.form)
    if not attempt.is_offered:
        abort(404)
    if attempt.wrong_headers:
        return _page(attempt, None), 422
    if request.form.get("only") == "code":
        return _page(attempt, None)
    reply = g.client.send(attempt.question)
    if reply.status == 403 and Refused(reply).code == "admin_key_required":
        raise Refused(reply)
    return _page(attempt, _shown(reply))


def _sheet(ident: str) -> Sheet:
    """The operation with the examples and credentials of this sandbox. Raises Refused to those who may not see them."""
    if contracts().operation(ident) is None:
        abort(404)
    credentials = g.client.credentials
    return sheet_of(ident, this_sandbox(), g.client.get, credentials, has_admin_key=bool(g.visitor.keys))


def as_reader(path: str) -> Any:
    """What somebody gets of a path who reads a page beside the console; None where it is refused.

    It is asked with the reader's own headers, and without the key of a session, as `recent_requests` does.
    """
    headers = {name: request.headers[name] for name in _OF_READERS if name in request.headers}
    reply: Reply = request.environ[ASK](Question("GET", path, "", headers, is_internal=True), None)
    return None if reply.is_refused else reply.json


def sheet_of(
    ident: str, name: str, get: Callable[[str], Any], credentials: Mapping[str, str], *, has_admin_key: bool
) -> Sheet:
    """The page of an operation that one of the contracts has, in the sandbox `name`; `get` answers the contract."""
    known = contracts()
    base = "" if ident in known.api.operations else CONTROL
    document = Document(get(f"{base}/openapi.json"))
    url = known.url + request.script_root
    return Sheet(document.operations[ident], base, document, name, url, has_admin_key, credentials)


def _page(attempt: Attempt, shown: Shown | None) -> str:
    try:
        g.clock = g.client.get(f"{CONTROL}/clock")
    except Refused:  # the call may have deleted the sandbox
        g.clock = None
    g.client.asked.clear()
    return render_template(
        "console/try.html", attempt=attempt, operation=attempt.sheet.operation, sheet=attempt.sheet, shown=shown
    )


def _shown(reply: Reply) -> Shown:
    media = reply.headers.get("content-type", "").partition(";")[0]
    is_short = len(reply.body) <= _LONGEST
    content = reply.json if is_short and media.endswith("json") else None
    text = None
    if content is None and (media.startswith("text/") or media.endswith(("json", "xml", "yaml"))):
        text = reply.body[:_LONGEST].decode("utf-8", "replace")
    return Shown(reply, media, content, text, _journaled(reply.request_id))


def _journaled(ident: str) -> str | None:
    try:
        return ident if ident and g.client.find(f"{CONTROL}/requests/{quote(ident, safe='')}") else None
    except Refused:
        return None
