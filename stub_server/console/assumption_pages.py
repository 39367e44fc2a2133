"""What the sandbox assumes where the source document says nothing, by kind, operation and text."""

from flask import g, render_template, request

from ..contract.source import JsonObject
from .addresses import with_query
from .site import contracts, pages

_LISTED = 20
_KINDS = ("contradiction", "limitation", "operation", "property")


@pages.get("/assumptions")
def assumptions() -> str:
    """The assumptions that a filter chooses."""
    every = g.client.control("assumptions")
    chosen = [each for each in every["assumptions"] if _matches(each)]
    last = max(1, -(-len(chosen) // _LISTED))
    page = min(max(1, request.args.get("page", 1, type=int)), last)
    return render_template(
        "console/assumptions.html",
        assumptions=every,
        chosen=chosen[(page - 1) * _LISTED : page * _LISTED],
        found=len(chosen),
        newer=with_query(page=page - 1) if page > 1 else None,
        older=with_query(page=page + 1) if page < last else None,
        kinds=_KINDS,
        operations=list(contracts().api.operations),
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
