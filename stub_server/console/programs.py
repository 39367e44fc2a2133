"""What programs read:

`/llms.txt`, the guide in one file, and answers by what `Accept` names.
"""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, render_template, request

from ..core.problem import NotFound
from .actions import plain_text
from .client import LOST
from .site import contracts

HTML, MARKDOWN, JSON = "text/html", "text/markdown", "application/json"
_EXAMPLE = "http://127.0.0.1:4600"
"""The server's address in the files of the guide."""
_FIXED = ("reference/", "deploy/")
"""Pages where that address is not the server's own: a default, or an example of the contract."""
_IN_FULL = (
    "api",
    "payments",
    "time",
    "retry",
    "webhooks",
    "faults",
    "journal",
    "agents",
    "files",
    "overlays",
    "teams",
)
"""Pages of the guide in one file, which has at most 60,000 bytes."""

programs = Blueprint("programs", __name__)


def is_for_people(path: str) -> bool:
    """Whether a page is asked for by a browser, which names HTML."""
    return HTML in _accepted() and wanted(path) == HTML


def wanted(path: str) -> str:
    """The form in which a page is asked for:

    HTML, unless its address or `Accept` names another one.
    """
    if path.endswith(".md"):
        return MARKDOWN
    named = _accepted()
    for kind in (MARKDOWN, JSON):
        if kind in named and named[kind] >= named.get(HTML, 0):
            return kind
    return HTML


def _accepted() -> dict[str, float]:
    """The qualities of the media types that `Accept` names."""
    return {name: quality for name, quality in request.accept_mimetypes if quality}


def markdown(text: str) -> Response:
    """A page as Markdown."""
    return Response(text, mimetype=MARKDOWN)


def as_markdown(path: str) -> str:
    """The address of a page, or of a section, as Markdown."""
    page, mark, place = path.partition("#")
    return f"{page}.md{mark}{place}"


def lost(message: str, near: str | None) -> Response:
    """Have a program refused, with the page that it may have meant."""
    advice = "/llms.txt lists the pages."
    if near is not None:
        page = as_markdown(near) if wanted(request.path) == MARKDOWN else near
        advice = f"Did you mean {page}? {advice}"
    refusal = NotFound(message, advice=advice, code="route_not_found")
    request.environ[LOST].append(refusal)
    return Response(status=404)


def addressed(text: str, address: str, escape: Callable[[str], Any] = str) -> str:
    """A page of the guide whose commands call this server, and this sandbox."""
    if address.startswith(_FIXED):
        return text
    server = contracts().url
    text = text.replace(f"{_EXAMPLE}/s/", str(escape(f"{server}/s/")))
    return text.replace(_EXAMPLE, str(escape(server + request.script_root)))


@programs.get("/llms.txt")
def llms() -> Response:
    """Where a program that knows only the address begins."""
    return plain_text(front_text())


@programs.get("/llms-full.txt")
def whole_guide() -> Response:
    """The pages of tasks that a program needs most."""
    guide, prefix = contracts().guide, request.script_root
    parts = [addressed(guide.text(name, f"{prefix}/"), name) for name in _IN_FULL]
    parts.append(f"{prefix}/llms.txt lists the other pages.\n")
    return plain_text("\n".join(parts))


def front_text() -> str:
    """What a program reads first."""
    known = contracts()
    return render_template(
        "llms.txt",
        server=known.url,
        url=known.url + request.script_root,
        operations=len(known.api.operations),
        controls=len(known.control.operations),
        events=len(known.api.events),
        index=known.guide.text("", ""),
    )
