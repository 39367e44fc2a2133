"""Records and changes: what is stored, and what a rule asks to have stored."""

from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

Body = dict[str, Any]


def exact(data: bytes) -> bytes:
    """A copy of exactly its length: orjson hands out its whole working buffer, kilobytes for a small record."""
    return b"%b" % data  # the fastest way to one


def place(created: int, ident: str) -> int:
    """Where a record stands in time: creation in ms, ties by id."""
    return created << 128 | int(ident.replace("-", ""), 16)


class Record(NamedTuple):
    """One version of one resource, never changed: `json` is what a caller sees, `hidden` what the API keeps to itself.

    `key` is the record's place in time.
    """

    id: str
    key: int
    version: int
    json: bytes
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


class Beside(NamedTuple):
    """What stands beside the record in an event: members of its hidden part by name, then others by value."""

    names: tuple[str, ...] = ()
    others: tuple[tuple[str, Any], ...] = ()


NOTHING_BESIDE = Beside()


@lru_cache(maxsize=64)
def moved_from(previous: str | None, *names: str) -> Beside:
    """The status that the record had before, after the members of its hidden part that `names` tells."""
    return Beside(names, (("previous_status", previous),))


# What a change is made of. Plain tuples, for every write makes some of them.
Put: TypeAlias = tuple[str, str, Body, Body, Row | None]
"""Store this version of a record: table, id, public and hidden part, the row that it replaces."""
Drop: TypeAlias = tuple[str, Row]
"""Take a record out: table and row."""
Emit: TypeAlias = tuple[str, str, str, Beside, str | None, bytes | None]
"""Tell of a record as the change leaves it: type, table, id, what stands beside it, the project that it belongs to.

The last member stands for the record where the store has none any more.
"""
Later: TypeAlias = tuple[int, str, str]
"""Have a job done: when (ms), which, for which subject."""


class Change:
    """One step: everything in it happens, or nothing does."""

    __slots__ = ("drops", "emits", "later", "puts")

    def __init__(self) -> None:
        self.puts: list[Put] = []
        self.drops: list[Drop] = []
        self.emits: list[Emit] = []
        self.later: list[Later] = []

    def create(self, table: str, ident: str, public: Body, hidden: Body) -> "Change":
        """Add a new record."""
        self.puts.append((table, ident, public, hidden, None))
        return self

    def update(self, table: str, row: Row, public: Body, hidden: Body | None = None) -> "Change":
        """Replace a record by its next version."""
        self.puts.append((table, row.record.id, public, row.hidden if hidden is None else hidden, row))
        return self

    def drop(self, table: str, row: Row) -> "Change":
        """Take a record out."""
        self.drops.append((table, row))
        return self

    def emit(
        self,
        type_: str,
        table: str,
        ident: str,
        beside: Beside = NOTHING_BESIDE,
        project: str | None = None,
        last: bytes | None = None,
    ) -> "Change":
        """Add an event; `last` stands for the record where the store has none any more."""
        self.emits.append((type_, table, ident, beside, project, last))
        return self

    def at(self, due: int, job: str, subject: str) -> "Change":
        """Have a job done for a subject at a time (ms)."""
        self.later.append((due, job, subject))
        return self

    def join(self, other: "Change") -> "Change":
        """Add everything of another change, after what is here."""
        self.puts += other.puts
        self.drops += other.drops
        self.emits += other.emits
        self.later += other.later
        return self

    def __add__(self, other: "Change") -> "Change":
        """Both, this one first, as one step."""
        return Change().join(self).join(other)
