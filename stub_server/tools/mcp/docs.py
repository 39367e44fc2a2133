"""Tools that read the documentation, over the pages that the server has for programs: `search_docs` and `read_docs`."""

from .session import Session, Wrong
from .texts import Result

_LONGEST = 5_000  # bytes of a page that are shown unless all of it is asked for


async def search_docs(session: Session, query: str, limit: int = 5) -> Result:
    """The sections of the guide, and pages of operations, error codes and events, that a query is about."""
    found = (await session.page("/guide", "application/json", q=query, limit=limit)).json["results"]
    if not found:
        return Result(["Nothing was found. Try other words, in English or Portuguese."], {}, "read_docs {page: README}")
    lines = []
    for each in found:
        lines += [f"{each['address']}: {each['heading']} ({each['page']})", f"  {each['text']}"]
    pages = [each["address"] for each in found]
    return Result(lines, {"pages": pages}, f"read_docs {{page: {pages[0]}}}", may_be_long=limit > 5)


async def read_docs(session: Session, page: str, full: bool = False) -> Result:
    """A page as Markdown: of an operation, a control, an error code or an event by its name, or of the guide."""
    name, _, section = page.partition("#")
    name = name.removesuffix(".md")
    places = [name] if name.startswith("/") else [f"/docs/{name}", f"/guide/{name}", f"/guide/reference/{name}"]
    for place in places:
        answer = await session.page(f"{place}.md", "text/markdown")
        if not answer.is_refused and answer.text:
            return _shown(answer.text, page, section, full=full)
    raise Wrong(
        f"There is no page {page[:60]}. search_docs finds one; so does the name of an operation, code or event."
    )


def _shown(text: str, page: str, section: str, *, full: bool) -> Result:
    """The page from its section on, cut where it is long; the sections that follow are named."""
    lines = text.splitlines()
    anchors = {number: _anchor(line) for number, line in enumerate(lines) if line.startswith("#")}
    begin = next((number for number, anchor in anchors.items() if anchor == section), 0)
    shown, size = list[str](), 0
    for line in lines[begin:]:
        size += len(line.encode()) + 1
        if size > _LONGEST and not full:
            break
        shown.append(line)
    later = [anchor for number, anchor in anchors.items() if number >= begin + len(shown)]
    following = f"read_docs {{page: {page.partition('#')[0]}#{later[0]}}}" if later else "call_api, search_docs"
    if len(shown) < len(lines) - begin:
        shown.append(f"… The page goes on: {', '.join(later[:8])}.")
    return Result(shown, {}, following, may_be_long=full)


def _anchor(line: str) -> str:
    """The fragment of a heading, as the guide makes it."""
    return "".join(sign for sign in line.lstrip("# ").lower() if sign.isalnum() or sign in "_ -").replace(" ", "-")
