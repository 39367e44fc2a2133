"""Addresses of pages: relative, so that they hold under whatever name and path the
server goes by.
"""

from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from flask import request

from ..contract.source import JsonObject
from ..core.text import SAFE_IN_PATHS
from .client import encoded

DONE = "done"
"""The query parameter that names the request of the action that led to a page."""


def here(path: str, query: JsonObject | None = None) -> str:
    """The address of a path of this sandbox, such as `/console/requests`."""
    found = "../" * (request.path.count("/") - 1) + quote(path.lstrip("/"), safe=SAFE_IN_PATHS)
    if ":" in found.partition("/")[0]:  # `https:example.com` would be another server
        found = f"./{found}"
    asked = encoded(query)
    return (found or "./") + (f"?{asked}" if asked else "")


def this_sandbox() -> str:
    """The name of the sandbox of this page."""
    return request.script_root.rpartition("/")[2] or "default"


def there(name: str, path: str) -> str:
    """The address of the same path in another sandbox."""
    up = "../../" if request.script_root else ""
    below = "" if name == "default" else f"s/{quote(name)}/"
    return "../" * (request.path.count("/") - 1) + up + below + path.lstrip("/")


def with_query(**changes: Any) -> str:
    """The address of this page with another query; None takes a parameter out."""
    query = {name: value for name, value in request.args.items() if name != DONE}
    return here(request.path, query | changes)


def split(address: str) -> SplitResult:
    """The parts of an address, all empty of what is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", "", "", "", "")


def own(address: str) -> str:
    """The address of a page that a form names, if actions may lead to it; else the list
    of requests.
    """
    parts = split(address)
    is_elsewhere = parts.scheme or parts.netloc or "\\" in address
    if is_elsewhere or not (parts.path == "/" or parts.path.startswith("/console/")):
        return here("/console/requests")
    return here(parts.path, {name: value for name, value in parse_qsl(parts.query) if name != DONE})
