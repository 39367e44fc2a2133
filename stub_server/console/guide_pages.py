"""The pages of the guide, and its search, for people and for programs.

They show nothing of a sandbox but its clock.
"""

from flask import Response, abort, jsonify, render_template, request, send_from_directory
from markupsafe import Markup, escape

from .guide.guide import Page, marked, unmarked
from .pages import GUIDE
from .programs import HTML, JSON, addressed, as_markdown, markdown, wanted
from .site import beside, contracts

_LONGEST = 200  # characters of a query
_FOUND = 5  # sections that a search answers to a program, unless it asks for more
_WORDS = 64  # words of each: five lines


@beside.get(GUIDE)
@beside.get(f"{GUIDE}.md")
@beside.get(f"{GUIDE}/<path:address>")
def show(address: str = "") -> Response | str:
    """A page, or on the index what a search finds."""
    known, kind = contracts().guide, wanted(request.path)
    address = address if address in known.pages else address.removesuffix(".md")
    query = request.args.get("q", "").replace("\0", " ").strip()[:_LONGEST] if not address else ""
    page = known.pages.get(address)
    if page is None:
        abort(404)
    if query and kind == JSON:
        return _found(query)
    if kind != HTML:
        return markdown(addressed(known.text(address, f"{request.script_root}/"), address))
    return guide_page(page, query)


def guide_page(page: Page, query: str = "") -> str:
    """A page in the frame of the guide, whose commands call this server and this sandbox."""
    known = contracts().guide
    results = []
    for result in known.search(query) if query else []:
        excerpt = Markup(marked(result.excerpt))  # noqa: S704 - `marked` escapes
        results.append((result, excerpt))
    return render_template(
        "guide.html",
        page=page,
        html=Markup(addressed(page.html, page.address, escape)),  # noqa: S704 - our own files
        query=query,
        results=results,
    )


def _found(query: str) -> Response:
    """The sections that a search finds, each with five lines and an address."""
    most = request.args.get("limit", _FOUND, type=int)
    found = contracts().guide.search(query, max(1, min(most, 20)), _WORDS)
    results = []
    for each in found:
        results.append(
            {
                "heading": each.heading,
                "page": each.page,
                "address": request.script_root + as_markdown(each.path),
                "text": addressed(unmarked(each.excerpt), each.path.removeprefix(f"{GUIDE}/")),
            }
        )
    return jsonify({"query": query, "results": results})


@beside.get(f"{GUIDE}/pictures/<name>")
def picture(name: str) -> Response:
    """A picture of a page."""
    return send_from_directory(contracts().guide.pictures, name, mimetype="image/webp")
