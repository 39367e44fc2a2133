"""Tools that read the documentation, over the pages that the server has for programs:

`search_docs` and `read_docs`.
"""

import re
from contextlib import suppress

from ...core.record import Body
from ...server.request import CONTROL
from .session import Refused, Session, Wrong
from .texts import Result

_LONGEST = 5_000  # characters of a page that are shown unless all of it is asked for
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


async def search_docs(session: Session, query: str, limit: int = 5) -> Result:
    """The sections of the guide, and pages of operations, error codes and events, that a
    query is about.
    """
    found = await _found(session, query, limit)
    if not found:
        return Result(
            ["Nothing was found. Try other words, in English or Portuguese."],
            {},
            "read_docs {page: api}",
        )
    lines, pages = [], []
    for each in found:
        lines += [f"{each['address']}: {each['heading']} ({each['page']})", f"  {each['text']}"]
        pages.append(each["address"])
    return Result(lines, {"pages": pages}, f"read_docs {{page: {pages[0]}}}", may_be_long=limit > 5)


async def read_docs(session: Session, page: str, full: bool = False) -> Result:
    """A page as Markdown: of an operation, a control, an error code or an event by its name, or of
    the guide.
    """
    name, _, section = page.partition("#")
    # as addresses that were found begin
    name = name.removesuffix(".md").removeprefix(f"/s/{session.sandbox}")
    if name.startswith(("/s/", CONTROL)):
        raise Wrong(
            "read_docs shows pages of this sandbox alone, such as createPixOrder. search_docs finds"
            " them."
        )
    places = [f"/docs/{name}", f"/guide/{name}"]
    if name.startswith("/"):
        places = [name]
    for place in places:
        with suppress(Refused):
            answer = await session.page(f"{place}.md", "text/markdown")
            return _shown(answer.body.decode(), name, section, full=full)
    words = " ".join(re.findall(r"[A-Z]?[a-z]+", page[:60])) or page[:60]
    near = [each["address"] for each in await _found(session, words, 3)]
    hint = f"The nearest are {', '.join(near)}." if near else "Ask search_docs by other words."
    raise Wrong(f"There is no page {page[:60]}. {hint}")


async def _found(session: Session, query: str, limit: int) -> list[Body]:
    """What the guide finds; nothing without words, for which it answers its index."""
    answer = await session.page("/guide", "application/json", q=query, limit=limit)
    return answer.json["results"] if answer.json else []


def _shown(text: str, name: str, section: str, *, full: bool) -> Result:
    """The page from a section on, if it has it; what is long ends before another one, which is
    named.
    """
    begins = {_anchor(each[1]): each.start() for each in _HEADING.finditer(text)}
    begin = begins.get(section, 0)
    limit = begin + _LONGEST
    end, following = len(text), "call_api, search_docs"
    if not full and limit < len(text):
        for anchor, place in begins.items():
            if begin < place <= limit:
                end, following = place, f"read_docs {{page: {name}#{anchor}}}"
    return Result([text[begin:end].rstrip()], {}, following, may_be_long=full)


def _anchor(heading: str) -> str:
    """The fragment of a section's heading, as the guide makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
