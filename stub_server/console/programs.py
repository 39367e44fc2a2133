"""What programs read:

`/llms.txt`, the guide in one file, and answers by what `Accept` names.
"""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, jsonify, render_template, request

from .actions import plain_text
from .guide.guide import Page
from .site import contracts

HTML, MARKDOWN, JSON = "text/html", "text/markdown", "application/json"
_EXAMPLE = "http://127.0.0.1:4600"
"""The server's address in the files of the guide."""
_FIXED = ("reference/", "deploy/")
"""Pages where that address is not the server's own: a default, or an example of the contract."""
_FULL = 60_000  # bytes of the guide in one file
_FIRST = ("api", "payments", "time", "retry", "webhooks", "faults", "journal")
_NOT_IN_FULL = (
    "about",
    "console",
    "scenarios",
    "reference/",
    "security",
    "performance",
    "changelog",
    "architecture",
    "deploy/",
)
_NOT_LISTED = (
    "about",
    "changelog",
    "architecture",
    "deploy/",
    "verify-workflow",
    "upgrade",
    "performance",
    *(f"reference/{name}" for name in ("operations", "controls", "errors", "events")),
)
"""Pages that the list leaves out: it names them already, or no program that calls the API
needs them.
"""
_LONGEST = 90  # characters that the list says of a page

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


def markdown(text: str, status: int = 200) -> Response:
    """A page as Markdown."""
    return Response(text, status, mimetype=MARKDOWN)


def as_markdown(path: str) -> str:
    """The address of a page, or of a section, as Markdown."""
    page, mark, place = path.partition("#")
    return f"{page}.md{mark}{place}"


def lost(message: str, near: str | None) -> Response:
    """404 for a program, with the page that it may have meant."""
    prefix = request.script_root
    guess = f" Did you mean {prefix}{as_markdown(near)}?" if near else ""
    text = f"{message}{guess} {prefix}/llms.txt lists the pages."
    if wanted(request.path) == MARKDOWN:
        return markdown(f"{text}\n", 404)
    answer = jsonify(
        {"error": True, "message": text, "code": "route_not_found", "status": 404, "details": []}
    )
    answer.status_code = 404
    return answer


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
    """The pages of tasks in one file as far as they fit, first those about calls; the
    others are named.
    """
    guide, parts, size, left = contracts().guide, list[str](), 0, list[str]()
    listed = [page.address for _, pages in guide.contents for page in pages]
    tasks = [address for address in listed if not address.startswith(_NOT_IN_FULL)]
    for address in sorted(tasks, key=lambda address: address not in _FIRST):
        text = addressed(guide.text(address, request.script_root), address)
        if size + len(text.encode()) > _FULL - 1_000:
            left.append(f"- {request.script_root}/guide/{address}.md")
            continue
        parts.append(text)
        size += len(text.encode()) + 1
    if left:
        parts.append("\n".join(("# Pages that are not in this file", "", *left, "")))
    return plain_text("\n".join(parts))


@programs.get("/guide.md")
def guide_index() -> Response:
    """The index of the guide as Markdown."""
    return markdown(addressed(contracts().guide.text("", request.script_root), ""))


def front_text() -> str:
    """What a program reads first."""
    known, guide = contracts(), contracts().guide
    contents = [
        (
            heading,
            [(page, _about(page)) for page in pages if not page.address.startswith(_NOT_LISTED)],
        )
        for heading, pages in guide.contents
    ]
    return render_template(
        "llms.txt",
        server=known.url,
        url=known.url + request.script_root,
        operations=len(known.api.operations),
        controls=len(known.control.operations),
        events=len(known.api.events),
        contents=contents,
    )


def _about(page: Page) -> str:
    text = contracts().guide.about[page.address]
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rpartition(' ')[0]} …"
