"""Records and changes: what is stored, and what a rule asks to have stored."""

from functools import lru_cache
from typing import Any, NamedTuple

Body = dict[str, Any]


def exact(data: bytes) -> bytes:
    """A copy of exactly its length: orjson hands out its whole working buffer, kilobytes for a small record."""
    return b"%b" % data  # the fastest way to one


def place(created: int, ident: str) -> int:
    """Where a record stands in time: creation in ms, ties by id."""
    return created << 128 | int(ident.replace("-", ""), 16)


class Record(NamedTuple):
    """One version of a resource, never changed: `public` is what a caller sees, `hidden` what the API keeps to itself.

    `key` is the record's place in time.
    """

    id: str
    key: int
    version: int
    public: bytes
    hidden: bytes


class Row(NamedTuple):
    """A record opened for a rule: its public and hidden parts as fresh dicts of the caller's own."""

    record: Record
    public: Body
    hidden: Body

    @property
    def id(self) -> str:
        """The record's id."""
        return self.record.id


class Extras(NamedTuple):
    """What stands beside the record in an event: members of its hidden part by name, then others by value."""

    names: tuple[str, ...] = ()
    others: tuple[tuple[str, Any], ...] = ()


NO_EXTRAS = Extras()


@lru_cache(maxsize=64)
def moved_from(previous: str | None, *names: str) -> Extras:
    """The status that the record had before, after the members of its hidden part that `names` tells."""
    return Extras(names, (("previous_status", previous),))
