"""Descriptions of the contract, which are CommonMark, as HTML.

Names of operations, codes and events are links.
"""

import re
from functools import lru_cache

from flask import request
from markupsafe import Markup

from .guide.markdown import parsed, rendered
from .site import Contracts, contracts

_CODE_OR_NAME = re.compile(r"`[^`]*`|\b([a-z]+[A-Z][A-Za-z]*)\b")


def prose(text: str) -> Markup:
    """A description of the contract, in CommonMark. An operation's id leads to its page."""
    up = "../" * (request.path.count("/") - 1)
    return _prose(contracts(), text or "", f"{up}docs/")


@lru_cache(maxsize=4_096)
def _prose(known: Contracts, text: str, docs: str) -> Markup:

    def linked(match: re.Match[str]) -> str:
        is_id = match[1] is not None and known.operation(match[1]) is not None
        return f"`{match[1]}`" if is_id else match[0]

    tokens = parsed(_CODE_OR_NAME.sub(linked, text))
    html = rendered(tokens, lambda target: target, lambda name: known.guide.operation(name, docs))
    return Markup(html)  # noqa: S704 - HTML in the text is escaped
