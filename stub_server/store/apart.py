"""A long member of the hidden part that several records share: kept apart from the JSON around it, once for all."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import orjson

from ..kernel.record import Body, Record, exact

APART: Mapping[str, str] = MappingProxyType({"webhook_logs": "request_body"})
"""The member by table: bytes in a parsed row, text in JSON."""


def written(hidden: Body, member: str | None) -> tuple[bytes, bytes]:
    """A hidden part as it is stored: the JSON, and what is kept apart from it, the very bytes that were given."""
    apart = b""
    if member is not None and member in hidden:
        apart = hidden[member]
        hidden = {name: value for name, value in hidden.items() if name != member}
    return (exact(orjson.dumps(hidden)) if hidden else b"{}"), apart


def whole(table: str, record: Record) -> bytes:
    """The hidden part of a record as one JSON."""
    if table not in APART:
        return record.hidden
    others = record.hidden[1:-1]
    text = orjson.dumps({APART[table]: record.apart.decode()})
    return b"{%b,%b" % (others, text[1:]) if others else text


def parted(table: str, hidden: bytes, known: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """A hidden part that is one JSON as it is stored. `known` are the members read so far: equal ones are shared.

    Raises KeyError and AttributeError where the member is no text.
    """
    if table not in APART:
        return hidden, b""
    member, parsed = APART[table], orjson.loads(hidden)
    apart = parsed[member].encode()
    return written(parsed | {member: known.setdefault(apart, apart)}, member)


def size_of(record: Record) -> int:
    """How many bytes a record has, with all that it shares."""
    return len(record.public) + len(record.hidden) + len(record.apart)


class Weight:
    """How many bytes some records take together: what several of them share counts once."""

    __slots__ = ("_base", "_holders", "size")

    def __init__(self, base: Weight | None = None) -> None:
        """With `base` what would be, if records came to those of another one, which stays as it is, and others went."""
        self._base = base
        self.size: int = 0 if base is None else base.size
        self._holders: dict[int, int] = {}  # how many records hold what is kept apart, by its identity

    def add(self, record: Record) -> None:
        """Count a record."""
        self.size += len(record.public) + len(record.hidden)
        if record.apart and self._hold(record.apart, +1) == 1:
            self.size += len(record.apart)

    def remove(self, record: Record) -> None:
        """Count a record no longer. It is the very one that was counted."""
        self.size -= len(record.public) + len(record.hidden)
        if record.apart and not self._hold(record.apart, -1):
            self.size -= len(record.apart)

    def _hold(self, apart: bytes, change: int) -> int:
        """Have so many more hold it; answers how many do."""
        held = id(apart)
        count = self._holders.get(held)
        if count is None:
            count = 0 if self._base is None else self._base._holders.get(held, 0)
        count += change
        if count or self._base is not None:
            self._holders[held] = count
        else:
            del self._holders[held]
        return count

    def copy(self) -> Weight:
        """An independent one of the same records."""
        twin = Weight()
        twin.size, twin._holders = self.size, self._holders.copy()
        return twin
