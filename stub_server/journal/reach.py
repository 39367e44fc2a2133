"""Where a recording can begin: after the newest request that went back to what was before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

import orjson

from ..kernel.record import Body


class Asked(NamedTuple):
    """A request and its answer, as far as they tell what it was about."""

    id: str
    operation: str | None
    status: int
    path: str
    body: bytes
    answer: bytes

    def named(self) -> str:
        """What the path names in `/_sandbox/<kind>/<name>/…`."""
        return unquote(self.path.split("/")[3]) if self.path.count("/") > 2 else ""

    def sent(self) -> Body:
        """The body; empty where it is no object."""
        return _object(self.body)

    def answered(self, member: str) -> Body:
        """A member of the answer; empty where it is no object."""
        found = _object(self.answer).get(member)
        return found if isinstance(found, dict) else {}

    def names_what(self) -> bool:
        """Whether a refusal names what of the request is wrong."""
        return bool(_object(self.answer).get("details"))


def beginning(requests: Iterable[Asked]) -> int:
    """How many requests, in the order in which they acted, must be left out for the others to be sent again.

    A snapshot that is restored must have been taken by one of those others, and a request that a rewind names be one.
    """
    begun = 0
    snapshots: set[str] = set()
    idents: set[str] = set()
    for number, request in enumerate(requests, 1):
        if request.operation == "createSnapshot" and request.status == 201:
            snapshots.add(str(request.answered("snapshot").get("name")))
        elif request.status == 200 and _goes_beyond(request, snapshots, idents):
            begun = number
            snapshots.clear()
            idents.clear()
        idents.add(request.id)
    return begun


def _goes_beyond(request: Asked, snapshots: set[str], idents: set[str]) -> bool:
    if request.operation == "restoreSnapshot":
        return request.named() not in snapshots
    to_request = request.sent().get("to_request") if request.operation == "rewindSandbox" else None
    return to_request is not None and to_request not in idents


def _object(text: bytes) -> Body:
    try:
        found = orjson.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
