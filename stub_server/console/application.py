"""The Flask application: the front page, which says how to begin, a page per operation, and the console.

The modules that end in `_pages` have the pages of the console; `shell.py` has what they share.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import iter_modules

from flask import Flask, Response, abort, render_template, request
from markupsafe import Markup, escape

from ..contract.document import Document, Operation
from ..server.layers.routing import DOCS
from ..server.request import CONTROL
from ..settings import Settings
from ..version import __version__
from .attempt import Attempt
from .client import ASKED
from .filters import FILTERS
from .guide.guide import Guide, Page
from .guide.markdown import parsed, rendered, sections
from .guide_pages import guide, guide_page
from .leaves import Leaves, operation_text
from .pay_pages import payers
from .programs import HTML, JSON, MARKDOWN, front_text, front_wanted, index, markdown, programs, wanted
from .sessions import Sessions
from .sheet import sources
from .shell import EXTENSION, Contracts, know_reader, pages, recent_requests
from .try_pages import as_reader, sheet_of

# Everything a page needs comes from this server: no font, script or picture from elsewhere, and no inline script.
_POLICY = "default-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"
_RECENT = 5  # requests that the front page shows
_CODE_OR_NAME = re.compile(r"`([^`]+)`|\b([a-z]+[A-Z][A-Za-z]*)\b")


@dataclass(frozen=True, slots=True)
class Group:
    """One group of operations as the page lists it."""

    name: str
    description: str
    operations: tuple[Operation, ...]


def create_console(document: Document, control: Document, root: Path, settings: Settings, sessions: Sessions) -> Flask:
    """The pages for two contracts and of the guide, whose files are in `root`.

    They run in threads and read no sandbox. What a page shows of one comes with its request, or is asked for.
    """
    application = Flask("stub_server.console")
    application.jinja_env.trim_blocks = application.jinja_env.lstrip_blocks = True
    application.jinja_env.filters.update(FILTERS)
    leaves = Leaves(document, control)
    guidance = Guide(root, [*leaves.entries()])
    application.extensions[EXTENSION] = Contracts(document, control, settings.url, __version__, sessions, guidance)
    for module in iter_modules([str(Path(__file__).parent)]):
        if module.name.endswith("_pages"):  # they add their views to `pages`
            import_module(f".{module.name}", __package__)
    application.register_blueprint(pages)
    application.register_blueprint(payers)
    application.register_blueprint(guide)
    application.register_blueprint(programs)
    known = control.operations.keys() | document.operations.keys()
    application.jinja_env.filters["prose"] = lambda text: _markup(text, known)
    leading = sources(control) | sources(document)
    schemes = document.raw["components"].get("securitySchemes", {})
    scopes = {scope["name"]: scope for scope in document.scopes}
    lifecycles = control.lifecycles | document.lifecycles  # the control contract repeats those that it shows

    @application.get("/")
    def front() -> str | Response:
        kind = front_wanted()
        if kind != HTML:
            return index() if kind == JSON else front_text()
        prefix = request.script_root
        return render_template(
            "front.html",
            recent=recent_requests(_RECENT),
            info=document.raw["info"],
            version=__version__,
            server=settings.url,
            url=settings.url + prefix,
            made=settings.created_by,
            name=prefix.rpartition("/")[2] or "default",
            home="./",
            root="../../" if prefix else "./",
            readable={o.id for o in control.operations.values() if _is_readable(o)},
            groups=list(_groups(document)),
            controls=list(_groups(control)),
            events=sorted(document.events),
            documented=sum(o.is_documented for o in document.operations.values()),
            total=len(document.operations),
        )

    @application.get(f"{DOCS}/<path:ident>")
    def operation(ident: str) -> str | Response:
        kind, ident = wanted(ident), ident.removesuffix(".md")
        text = leaves.text(ident)
        if text is not None:
            return markdown(text) if kind == MARKDOWN else guide_page(_page_of(text, ident, guidance))
        is_control = ident not in document.operations
        contract = control if is_control else document
        if ident not in contract.operations:
            abort(404)
        name = request.environ[ASKED]
        if kind == MARKDOWN:  # it shows no key
            sheet = sheet_of(ident, name, as_reader, {}, has_admin_key=bool(settings.admin_key))
            return markdown(operation_text(sheet, document.events))
        credentials = as_reader(f"{CONTROL}/credentials") or {}
        sheet = sheet_of(ident, name, as_reader, credentials, has_admin_key=bool(settings.admin_key))
        found, answers, attempt = sheet.operation, sheet.answers, Attempt(sheet)
        is_tried = credentials != {} and attempt.is_offered and know_reader()
        listed = next(group for group in _groups(contract) if contract.operations[ident] in group.operations)
        return render_template(
            "operation.html",
            info=document.raw["info"],
            version=__version__,
            home="../" * (1 + ident.count("/")),
            sheet=sheet,
            operation=found,
            is_control=is_control,
            group=listed,
            scheme=schemes.get(found.scheme or "", {}),
            scopes=[scopes.get(name, {"name": name}) for name in sorted(found.scopes)],
            events=[(name, document.events.get(name, {})) for name in found.emits],
            answers=answers,
            headers=list({each.name: each for answer in reversed(answers) for each in answer.headers}.values())[::-1],
            moves=sheet.moves(lifecycles),
            leading=leading,
            drops=settings.unknown_fields == "ignore" and not is_control,
            attempt=attempt,
            is_tried=is_tried,
        )

    @application.get("/favicon.ico")
    def favicon() -> Response:
        """Browsers request this path for responses that link to no icon, such as files."""
        return application.send_static_file("favicon.svg")

    @application.after_request
    def guard(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "same-origin"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if request.path.startswith(DOCS):  # it may show a key
            response.headers["Cache-Control"] = "no-store"
        return response

    return application


def _page_of(text: str, name: str, guidance: Guide) -> Page:
    """A page of the contract as HTML; names of others lead to theirs."""
    tokens = parsed(text)
    return Page("", name, rendered(tokens, lambda target: target, guidance.operation), sections(tokens))


def _is_readable(operation: Operation) -> bool:
    """Whether a plain link works for the operation: a GET without path ids and query, whose answer ends."""
    ends = not any("text/event-stream" in response.media for response in operation.responses.values())
    return operation.method == "GET" and ends and not any(p.required for p in operation.parameters)


def _groups(document: Document) -> Iterator[Group]:
    """The operations by tag, in the order of the document's tags; those that an overlay has not declared come last."""
    described = {tag["name"]: tag.get("description", "") for tag in document.raw.get("tags", ())}
    used = (operation.tag for operation in document.operations.values())
    for name in dict.fromkeys(chain(described, used)):
        found = tuple(o for o in document.operations.values() if o.tag == name)
        if found:
            yield Group(name, described.get(name, ""), found)


def _markup(text: str, known: Set[str]) -> Markup:
    """A description as paragraphs. What stands between backticks is code, and an operation's id leads to its page."""
    return Markup("").join(
        Markup("<p>{}</p>").format(_inline(" ".join(paragraph.split()), known))
        for paragraph in text.split("\n\n")
        if paragraph.strip()
    )


def _inline(text: str, known: Set[str]) -> Markup:
    found, at = Markup(""), 0
    for match in _CODE_OR_NAME.finditer(text):
        found += escape(text[at : match.start()])
        at = match.end()
        shown = Markup("<code>{}</code>").format(match[1]) if match[1] else escape(match[2])
        name = match[1] or match[2]
        found += Markup('<a href="{}">{}</a>').format(name, shown) if name in known else shown
    return found + escape(text[at:])
