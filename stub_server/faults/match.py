"""Decides which requests or deliveries a fault rule is for: by operation, event, address, members of the body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from ..kernel.record import Body
from ..kernel.text import glob

_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[([0-9]{1,4}|\*)\]")
_PATH = re.compile(rf"\$(?:{_STEP.pattern})+").fullmatch

Step = str | int | None
"""A member's name, a place in a list, or None for every place."""


class Request(NamedTuple):
    """What a rule's `match` is compared with, besides the body. Header names are in lower case."""

    operation: str
    method: str
    path: str
    headers: Mapping[bytes, bytes]


class Sending(NamedTuple):
    """What a delivery rule's `match` is compared with: the event's type, the address, and the payload's bytes."""

    event: str
    url: str
    payload: str


def body_path(text: str) -> tuple[Step, ...]:
    """`$.items[0].name` -> `("items", 0, "name")`; `[*]` is None. Raises ValueError for any other text."""
    if not _PATH(text):
        raise ValueError(text)
    steps: list[Step] = []
    for name, index in _STEP.findall(text):
        steps.append(name or (None if index == "*" else int(index)))
    return tuple(steps)


class Match:
    """A rule's `match`. All of its conditions must hold; texts may be globs with `*` and `?`."""

    __slots__ = ("_body", "_event", "_headers", "_method", "_operation", "_path", "_url")

    def __init__(self, asked: Body) -> None:
        """`asked` is the `match` of a request. Raises ValueError with a path of the body that is not valid."""
        self._operation, self._method = asked.get("operationId"), asked.get("method")
        self._path = asked.get("path")
        self._event, self._url = asked.get("event"), asked.get("url")
        self._headers = [(name.lower().encode("latin-1", "replace"), g) for name, g in asked.get("header", {}).items()]
        self._body = [(body_path(path), wanted) for path, wanted in asked.get("body", {}).items()]

    @property
    def reads_body(self) -> bool:
        """Whether there are conditions on the body."""
        return bool(self._body)

    def fits(self, request: Request) -> bool:
        """Whether a request meets all conditions but those on the body."""
        if self._operation is not None and self._operation != request.operation:
            return False
        if self._method is not None and self._method != request.method:
            return False
        if self._path is not None and not glob(self._path, request.path):
            return False
        for name, wanted in self._headers:
            value = request.headers.get(name)
            if value is None or not glob(wanted, value.decode("latin-1")):
                return False
        return True

    def fits_delivery(self, sending: Sending) -> bool:
        """Whether a delivery meets all conditions. Its payload is only read where one asks for a member of it."""
        if self._event is not None and not glob(self._event, sending.event):
            return False
        if self._url is not None and not glob(self._url, sending.url):
            return False
        return not self._body or self.fits_body(orjson.loads(sending.payload))

    def fits_body(self, body: Any) -> bool:
        """Whether a body meets the conditions on it."""
        return all(any(_equal(wanted, value) for value in _values(body, path)) for path, wanted in self._body)


def _equal(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, str):
        return glob(wanted, value if isinstance(value, str) else orjson.dumps(value).decode())
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    return bool(wanted == value)


def _values(node: Any, path: tuple[Step, ...]) -> Iterator[Any]:
    """The values at a path of a body: none, one, or with `[*]` several."""
    if not path:
        yield node
        return
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if isinstance(node, dict) and step in node:
            yield from _values(node[step], rest)
    elif isinstance(node, list):
        for item in node if step is None else node[step : step + 1]:
            yield from _values(item, rest)
