"""One Markdown file as HTML and as sections: headings that can be linked, links that hold
in the guide.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n+", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_LEVELS = ("h1", "h2", "h3")
"""The headings that begin a section."""
Address = Callable[[str], str | None]
"""The address of what a text names, None for what has none."""


class Section(NamedTuple):
    """A heading with the text up to the next one; `anchor` is its fragment, `level` 1 to 3."""

    level: int
    heading: str
    anchor: str
    text: str


def parsed(source: str) -> list[Token]:
    """The tokens of a file, each heading with an id as GitHub makes it."""
    tokens, met = _PARSER.parse(source), Counter[str]()
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            anchor = re.sub(r"[^\w -]", "", plain(inline).lower()).replace(" ", "-")
            token.attrSet("id", f"{anchor}-{met[anchor]}" if met[anchor] else anchor)
            met[anchor] += 1
    return tokens


def rendered(tokens: list[Token], link: Address, operation: Address) -> str:
    """A file as HTML, by its tokens, which are changed.

    `link` answers the address of a target, None to leave the link out; `operation` that of an id,
    None for other words.
    """
    for token in tokens:
        if token.type in ("fence", "code_block", "table_open"):
            token.attrSet("tabindex", "0")  # it scrolls, so the keyboard must reach it
        for child in token.children or ():
            if child.type == "image":
                child.attrSet("src", link(str(child.attrGet("src"))) or "")
        if token.children:
            token.children = [*_linked(token.children, link, operation)]
    return str(_PARSER.renderer.render(tokens, _PARSER.options, {}))


def sections(tokens: list[Token]) -> list[Section]:
    """The sections of a file in their order. The first one has the title of the page."""
    found: list[Section] = []
    for before, token in pairwise(tokens):
        if before.type == "heading_open" and before.tag in _LEVELS:
            found.append(
                Section(_LEVELS.index(before.tag) + 1, plain(token), str(before.attrGet("id")), "")
            )
        elif found and token.type in ("inline", "fence", "code_block"):
            found[-1] = found[-1]._replace(text=f"{found[-1].text} {plain(token)}".strip())
    return found


def relinked(source: str, link: Address) -> str:
    """A file as Markdown, whose links lead where `link` says; without those that lead nowhere, and
    without pictures.
    """

    def replaced(match: re.Match[str]) -> str:
        address = link(match[2])
        return match[1] if address is None else f"[{match[1]}]({address})"

    return _LINK.sub(replaced, _PICTURE.sub("", source))


def plain(token: Token) -> str:
    """The text of a token without marks."""
    if token.children is None:
        return token.content
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children)


def _linked(children: list[Token], link: Address, operation: Address) -> Iterator[Token]:
    """The tokens of a line: links lead to pages of the guide, and the id of an operation
    to its page.
    """
    opened: list[bool] = []
    for child in children:
        if child.type == "link_open":
            address = link(str(child.attrGet("href")))
            opened.append(address is not None)
            if address is None:
                continue
            child.attrSet("href", address)
        elif child.type == "link_close":
            if not opened.pop():
                continue
        elif (
            child.type == "code_inline"
            and not opened
            and (address := operation(child.content)) is not None
        ):
            start = Token("link_open", "a", 1, attrs={"href": address})
            yield from (start, child, Token("link_close", "a", -1))
            continue
        yield child
