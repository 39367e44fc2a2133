"""Descriptions of the contract, which are CommonMark, as HTML.

Names of operations, codes and events in backticks are links.
"""

from functools import lru_cache

from flask import request
from markupsafe import Markup

from .guide.markdown import parsed, rendered
from .site import Contracts, contracts


def prose(text: str) -> Markup:
    """A description of the contract, in CommonMark."""
    up = "../" * (request.path.count("/") - 1)
    return _prose(contracts(), text or "", f"{up}docs/")


@lru_cache(maxsize=4_096)
def _prose(known: Contracts, text: str, docs: str) -> Markup:
    html = rendered(parsed(text), lambda name: known.guide.operation(name, docs))
    return Markup(html)  # noqa: S704 - HTML in the text is escaped
