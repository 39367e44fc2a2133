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
_LINK = re.compile(r"(!?)\[([^\]]+)\]\(([^)\s]+)\)")
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


def rendered(tokens: list[Token], operation: Address) -> str:
    """A file as HTML, by its tokens, which are changed.

    `operation` answers the address of an id, None for other words.
    """
    for token in tokens:
        if token.type in ("fence", "code_block", "table_open"):
            token.attrSet("tabindex", "0")  # it scrolls, so the keyboard must reach it
        if token.children:
            token.children = [*_linked(token.children, operation)]
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
    """A file as Markdown, whose links and pictures lead where `link` says; without those that lead
    nowhere.
    """

    def replaced(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        address = link(target)
        return text if address is None else f"{mark}[{text}]({address})"

    return _LINK.sub(replaced, source)


def without_pictures(source: str) -> str:
    """A file as Markdown for programs."""
    return _PICTURE.sub("", source)


def plain(token: Token) -> str:
    """The text of a token without marks."""
    if token.children is None:
        return token.content
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children)


def _linked(children: list[Token], operation: Address) -> Iterator[Token]:
    """The tokens of a line, in which the id of an operation leads to its page."""
    is_link = False
    for child in children:
        if child.type in ("link_open", "link_close"):
            is_link = child.type == "link_open"
        is_word = child.type == "code_inline" and not is_link
        address = operation(child.content) if is_word else None
        if address is None:
            yield child
        else:
            start = Token("link_open", "a", 1, attrs={"href": address})
            yield from (start, child, Token("link_close", "a", -1))
