"""What the sandbox assumes where the source document says nothing, by kind, operation and text."""

from flask import g, render_template, request

from ..contract.source import JsonObject
from ..server.lists import pagination
from .site import pages

_LISTED = 20
_KINDS = ("contradiction", "limitation", "operation", "property")


@pages.get("/assumptions")
def assumptions() -> str:
    """The assumptions that a filter chooses."""
    every = g.client.control("assumptions")
    chosen = [each for each in every["assumptions"] if _matches(each)]
    page = max(1, request.args.get("page", 1, type=int))
    return render_template(
        "console/assumptions.html",
        assumptions=every,
        chosen=chosen[(page - 1) * _LISTED : page * _LISTED],
        pagination=pagination(page, _LISTED, len(chosen)),
        kinds=_KINDS,
    )


def _matches(assumption: JsonObject) -> bool:
    kind, operation, text = (
        request.args.get(name, "").strip() for name in ("kind", "operation", "q")
    )
    if kind and assumption["kind"] != kind:
        return False
    if operation and operation not in assumption["operations"]:
        return False
    return text.lower() in f"{assumption['id']} {assumption['text']}".lower()
