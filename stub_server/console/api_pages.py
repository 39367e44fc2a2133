"""The API: its operations with a filter, and a page for each: what it takes and answers, and a call
to try.
"""

from collections.abc import Mapping
from http.client import responses
from typing import Any

from flask import Response, abort, g, render_template, request

from ..contract.document import Document
from ..contract.secrets import KEY_HEADERS
from ..server.layers.inside import Question, Reply
from ..server.layers.routing import DOCS
from ..server.request import CONTROL
from .actions import journaled, links, steps_of
from .addresses import this_sandbox
from .client import ASK, ASKED, Refused
from .guide.guide import Page
from .guide.markdown import parsed, rendered, sections
from .guide_pages import guide_page
from .leaves import operation_text
from .programs import MARKDOWN, markdown, wanted
from .sheet import Sheet, is_text
from .site import beside, contracts, pages

_OF_READERS = (
    "host",
    "origin",
    "sec-fetch-site",
    "authorization",
    "x-sandbox",
    *KEY_HEADERS,
)
"""Headers that decide what the reader of a page may see."""


@beside.get(DOCS)
def list_operations() -> str:
    """The operations of the API and the controls, or those that a filter finds."""
    known, text = contracts(), request.args.get("q", "").strip()[:200]
    words = text.lower().split()
    found = {each.name for each in known.guide.entries if each.has(words)}
    return render_template("api.html", text=text, found=found)


@beside.get(f"{DOCS}/<path:ident>")
def operation(ident: str) -> str | Response:
    """One operation, with the call that works where the reader may send it; an error code or an
    event by its name.

    Programs get Markdown, which shows no key.
    """
    known, is_markdown = contracts(), wanted(ident) == MARKDOWN
    ident = ident.removesuffix(".md")
    text = known.leaves.text(ident)
    if text is not None:
        tokens = parsed(text)
        html = rendered(tokens, known.guide.operation)  # names of others lead to theirs
        page = Page("", ident, html, sections(tokens))
        return markdown(text) if is_markdown else guide_page(page)
    contract = _as_reader(_contract_of(ident))
    if contract.is_refused:
        raise Refused(contract)
    credentials: Mapping[str, str] = {}
    if not is_markdown:
        own = _as_reader(f"{CONTROL}/credentials")
        credentials = {} if own.is_refused else own.json
    sheet = _sheet(ident, contract.json, credentials)
    if is_markdown:
        return markdown(operation_text(sheet))
    return _page(sheet, is_tried=credentials != {} and "visitor" in g)


@pages.get("/try/<path:ident>")
def try_operation(ident: str) -> str:
    """The same with the key of the session."""
    return try_page(ident)


def try_page(ident: str, sent: Mapping[str, str] | None = None) -> str:
    """The form of an operation with values that work, but for those that are given."""
    return _page(own_sheet(ident, sent))


@pages.post("/try/<path:ident>")
def send_operation(ident: str) -> str | tuple[str, int]:
    """Send what the form says, and show the answer beside it; with `only=code` the code alone."""
    sheet = own_sheet(ident, request.form)
    if not sheet.is_offered:
        abort(404)
    if request.form.get("only") == "code":
        return _page(sheet)
    return _page(sheet, g.client.send(sheet.question))


def own_sheet(ident: str, sent: Mapping[str, str] | None = None) -> Sheet:
    """The operation with the examples and credentials of this sandbox.

    Raises Refused to those who may not see them.
    """
    return _sheet(ident, g.client.get(_contract_of(ident)), g.client.credentials, sent)


def _contract_of(ident: str) -> str:
    """The path of the contract that has an operation. Raises NotFound."""
    if contracts().operation(ident) is None:
        abort(404)
    return f"{contracts().home(ident)[0]}/openapi.json"


def _sheet(
    ident: str,
    raw: Any,
    credentials: Mapping[str, str],
    sent: Mapping[str, str] | None = None,
) -> Sheet:
    """The page of an operation, by the contract as it is served."""
    document = Document(raw)
    return Sheet(
        operation=document.operations[ident],
        base=contracts().home(ident)[0],
        document=document,
        name=request.environ[ASKED] or this_sandbox(),
        url=contracts().url + request.script_root,
        has_admin_key=bool(contracts().settings.admin_key),
        credentials=credentials,
        sent=sent or {},
    )


def _as_reader(path: str) -> Reply:
    """What the reader of a page gets of a path, by their own headers and session."""
    headers = {name: request.headers[name] for name in _OF_READERS if name in request.headers}
    if "visitor" in g:
        headers |= {name.lower(): key for name, key in g.visitor.keys.items()}
    reply: Reply = request.environ[ASK](Question("GET", path, "", headers, is_internal=True), None)
    return reply


def _page(sheet: Sheet, reply: Reply | None = None, *, is_tried: bool = True) -> str:
    """The page, with an answer and the pages of what was made; the journal need not have it."""
    if "clock" not in g and "visitor" in g:
        try:
            g.clock = g.client.control("clock")
        except Refused:  # the call may have deleted the sandbox
            g.clock = None
    kept = journaled(reply.request_id) if reply and reply.request_id else None
    return render_template(
        "operation.html",
        sheet=sheet,
        reply=reply,
        kept=kept,
        links=links(kept, steps_of(kept)) if kept and kept["step"] else [],
        is_text=is_text,
        meanings=responses,
        is_tried=is_tried and sheet.is_offered,
    )
