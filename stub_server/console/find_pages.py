"""The finder: an id leads to its page, other texts to records, operations, pages of the
guide and requests.
"""

import re
from collections.abc import Iterator
from contextlib import suppress

from flask import Response, g, render_template, request

from ..server.layers.routing import DOCS
from ..server.request import CONTROL
from .actions import go
from .addresses import here
from .client import Refused
from .data_pages import kinds, listed_in, listing_of, title_of
from .filters import singular
from .site import contracts, pages

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_LONGEST, _MOST = 200, 5
_NAMED_BY = {
    "orders": "code",
    "customers": "search",
    "plans": "search",
    "products": "search",
    "projects": "search",
}
"""The filter of each list that finds a record by what people call it."""
Found = tuple[str, str, str]
"""What has a text: the kind of thing, its name and its address."""


@pages.get("/find")
def find() -> Response | str:
    """Lead to what a text names; where that is several, show them."""
    text = request.args.get("q", "").strip()[:_LONGEST]
    if not text:
        return go(here("/console/requests"))
    address = _page_of_id(text)
    if address is not None:
        return go(here(address))
    found = [*_records(text), *_documented(text)]
    if not found:
        return go(here("/console/requests", {"contains": text}))
    if len(found) == 1:
        return go(here(found[0][2]))
    return render_template("console/find.html", text=text, found=found)


def _page_of_id(text: str) -> str | None:
    """The page of the thing with this id, None for other texts."""
    if re.fullmatch(r"req_[0-9a-f]{1,36}", text):
        return f"/console/requests/{text}"
    if re.fullmatch(r"evt_[0-9A-Za-z]{1,40}", text):
        return f"/console/events/{text}"
    named = {name.lower(): name for name in contracts().guide.names}.get(text.lower())
    if named is not None:
        return f"{DOCS}/{named}"
    if _UUID(text.lower()):
        for resource in contracts().control.schema("StepResource")["enum"]:
            if (
                g.client.find(f"{CONTROL}/records/{resource}/{text.lower()}/history", {"limit": 1})
                is not None
            ):
                return f"/console/data/{resource}/{text.lower()}"
    return None


def _records(text: str) -> Iterator[Found]:
    """The records that are called so."""
    for kind, resource in kinds().items():
        if kind not in _NAMED_BY:
            continue
        with suppress(Refused):  # a text that the filter does not take
            asked = {_NAMED_BY[kind]: text, "limit": _MOST}
            for each in listed_in(g.client.get(listing_of(resource).path, asked))[0]:
                ident = each["id"]
                yield singular(kind), title_of(each, ident), f"/console/data/{kind}/{ident}"


def _documented(text: str) -> Iterator[Found]:
    """Operations, error codes, events and sections of the guide that have all words."""
    for each in contracts().guide.search(text, 2 * _MOST, some=False):
        kind, _, name = each.page.partition(": ")
        if not each.path.startswith(f"{DOCS}/"):
            kind, name = "guide", f"{each.page}: {each.heading}"
        yield kind.lower(), name or each.heading, each.path
