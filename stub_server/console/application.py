"""The Flask application: today the front page, which says what this server is and how to begin."""

from collections.abc import Iterator
from dataclasses import dataclass

from flask import Flask, Response, render_template, request

from ..contract.document import Document, Operation

# Everything a page needs comes from this server: no font, script or picture from elsewhere, and no inline script.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class Group:
    """One group of operations as the page lists it."""

    name: str
    description: str
    operations: tuple[Operation, ...]


def create_console(document: Document, control: Document, version: str, url: str, made: str) -> Flask:
    """The pages for two contracts; `made` says how a sandbox comes to be.

    They run in threads and read no sandbox; the browser asks the API for its data.
    """
    application = Flask("stub_server.console")
    application.jinja_env.trim_blocks = application.jinja_env.lstrip_blocks = True

    @application.get("/")
    def front() -> str:
        prefix = request.script_root
        return render_template(
            "front.html",
            info=document.raw["info"],
            version=version,
            server=url,
            url=url + prefix,
            made=made,
            name=prefix.rpartition("/")[2] or "default",
            root="../../" if prefix else "./",
            readable={o.id for o in control.operations.values() if _is_readable(o)},
            groups=list(_groups(document)),
            controls=list(_groups(control)),
            events=sorted(document.events),
            documented=sum(o.is_documented for o in document.operations.values()),
            total=len(document.operations),
        )

    @application.get("/favicon.ico")
    def favicon() -> Response:
        """Browsers request this path for responses that link to no icon, such as files."""
        return application.send_static_file("favicon.svg")

    @application.after_request
    def guard(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    return application


def _is_readable(operation: Operation) -> bool:
    """Whether a plain link works for the operation: a GET without path ids and query, whose answer ends."""
    ends = not any("text/event-stream" in response.media for response in operation.responses.values())
    return operation.method == "GET" and ends and not any(p.required for p in operation.parameters)


def _groups(document: Document) -> Iterator[Group]:
    for tag in document.raw["tags"]:
        found = tuple(o for o in document.operations.values() if o.tag == tag["name"])
        if found:
            yield Group(tag["name"], tag.get("description", ""), found)
