"""The Flask application: the overview, a page per operation, the guide, the console, and the page
of a payer.

The modules that end in `_pages` have the pages; `shell.py` has what they share.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from flask import Flask, Response, request

from ..contract.document import Document
from ..contract.source import read
from ..core.clock import iso, parse_iso
from ..data.scenario import known_scenarios
from ..server.layers.routing import DOCS
from ..settings import Settings
from .filters import FILTERS, TESTS
from .guide.guide import Guide
from .leaves import LEAF_FILTERS, Leaves
from .pay_pages import payers
from .programs import programs
from .prose import prose
from .room import ROOM_FILTERS
from .sessions import Sessions
from .shell import Forgotten
from .site import EXTENSION, Contracts, beside, grouped, pages
from .snippets import quoted

# Everything a page needs comes from this server: no font, script or picture from elsewhere, and no
# inline script.
_POLICY = (
    "default-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src"
    " 'none'"
)


def create_console(
    document: Document, control: Document, root: Path, settings: Settings, sessions: Sessions
) -> Flask:
    """The pages for two contracts and of the guide, whose files are in `root`.

    They run in threads and read no sandbox. What a page shows of one comes with its request, or is
    asked for.
    """
    application = Flask("stub_server.console")
    application.jinja_env.context_class = Forgotten
    application.jinja_env.trim_blocks = application.jinja_env.lstrip_blocks = True
    application.jinja_env.filters.update(
        FILTERS
        | ROOM_FILTERS
        | LEAF_FILTERS
        | {"prose": prose, "quoted": quoted, "iso": iso, "ms": parse_iso}
    )
    application.jinja_env.tests.update(TESTS)
    leaves = Leaves(document, control)
    application.extensions[EXTENSION] = Contracts(
        api=document,
        control=control,
        settings=settings,
        scenarios=known_scenarios(),
        personas={
            file.stem: read(file)["about"]
            for file in sorted((root / "fixtures" / "personas").glob("*.yaml"))
        },
        payer_texts=read(root / "fixtures" / "console" / "pay.yaml"),
        sessions=sessions,
        leaves=leaves,
        guide=Guide(root, [*leaves.entries()]),
        groups=grouped(document),
        controls=grouped(control),
    )
    for module in iter_modules([str(Path(__file__).parent)]):
        if module.name.endswith("_pages"):  # they add their views to the blueprints
            import_module(f".{module.name}", __package__)
    for blueprint in (pages, beside, payers, programs):
        application.register_blueprint(blueprint)

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
