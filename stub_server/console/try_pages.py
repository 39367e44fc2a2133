"""Any operation of either contract, to try: a form with a call that works, the answer beside it, and the code."""

from typing import Any, NamedTuple
from urllib.parse import quote

from flask import abort, g, render_template, request

from ..calls.call import CONTROL
from ..contract.document import Document
from ..http.inside import Reply
from .attempt import Attempt
from .client import Refused
from .pages import SandboxView
from .sheet import Sheet
from .shell import contracts, pages

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
    known = contracts()
    is_control = ident not in known.api.operations
    if known.operation(ident) is None:
        abort(404)
    credentials = g.client.credentials
    live = Document(g.client.get(f"{CONTROL}/openapi.json" if is_control else "/openapi.json"))
    name, url = request.script_root.rpartition("/")[2] or "default", known.url + request.script_root
    sandbox = SandboxView(name, url, live, bool(g.visitor.keys), credentials["jwt"], credentials["private_key"])
    return Sheet(live.operations[ident], CONTROL if is_control else "", sandbox)


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
