"""The pages of the guide, and its search. They need no session and show nothing of a sandbox but its clock."""

from flask import Response, abort, render_template, request, send_from_directory
from markupsafe import Markup, escape

from .guide.guide import Page
from .pages import GUIDE
from .site import beside, contracts

_LONGEST = 200  # characters of a query
_EXAMPLE = "http://127.0.0.1:4600"
"""The server's address in the files of the guide."""
_FIXED = ("reference/", "deploy/")
"""Pages where that address is not the server's own: a default, or an example of the contract."""


@beside.get(GUIDE, defaults={"address": ""})
@beside.get(f"{GUIDE}/<path:address>")
def show(address: str) -> str:
    """A page, or on the index what a search finds."""
    known = contracts().guide
    query = request.args.get("q", "").replace("\0", " ").strip()[:_LONGEST] if not address else ""
    page = known.pages.get(address)
    if page is None:
        abort(404)
    return render_template(
        "guide.html",
        page=page,
        html=_html(page),
        query=query,
        results=[(result, Markup(result.excerpt)) for result in known.search(query)] if query else [],  # noqa: S704
    )


def _html(page: Page) -> Markup:
    """A page whose commands call this server, and this sandbox."""
    server, html = contracts().url, page.html
    if not page.address.startswith(_FIXED):
        html = html.replace(f"{_EXAMPLE}/s/", str(escape(f"{server}/s/")))
        html = html.replace(_EXAMPLE, str(escape(server + request.script_root)))
    return Markup(html)  # noqa: S704 - made of our own files, with HTML escaped


@beside.get(f"{GUIDE}/pictures/<name>")
def picture(name: str) -> Response:
    """A picture of a page."""
    return send_from_directory(contracts().guide.pictures, name, mimetype="image/webp")
