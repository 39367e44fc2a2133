"""What a table is told about its records: keys, indexes, sums, and which part of them lives elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from ..kernel.record import Body

Extract = Callable[[Body, Body], Any]
"""(public, hidden) -> a value; None stands for "not in this index"."""
Check = Callable[[Body], None]
"""Raises when a public part does not keep the contract."""
Parts: TypeAlias = tuple[Body, Body]
"""A record's public and hidden part."""


class UniqueViolation(Exception):
    """A unique key already has a holder: the rules let something through, or an id clashed."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the public part (side 0) or the hidden part (side 1); a table reads it without a call."""

    side: int
    name: str

    def __call__(self, public: Body, hidden: Body) -> Any:
        return (hidden if self.side else public).get(self.name)


def plain(extract: Extract) -> Extract:
    """The same as a plain function, whose call costs half of a Member's."""
    if not isinstance(extract, Member):
        return extract
    name = extract.name
    return (lambda public, hidden: hidden.get(name)) if extract.side else (lambda public, hidden: public.get(name))


def public_values(extracts: Sequence[Extract]) -> Callable[[Body], Any] | None:
    """What gives a record's values of all of these at once; None unless each is a member of the public part."""
    names = [extract.name for extract in extracts if isinstance(extract, Member) and not extract.side]
    return itemgetter(*names) if names and len(names) == len(extracts) else None


def _none() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sum:
    """A running total of a whole number, updated with every write: added under the record's value of an index."""

    group: str
    member: Member


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many different members each value of an index has; a record with member None does not count."""

    group: str
    member: Extract


@dataclass(frozen=True, slots=True)
class Mirror:
    """A member that shows part of another table's record as that is now; `reference` is the member with its id."""

    table: str
    reference: str


class Ring(NamedTuple):
    """A table keeps so many records of so many bytes; the oldest go for new ones. Those whose value in the index `by`
    is one of `kept` stay, until there are more than `most`, or more than `most_size` bytes, in all.
    """

    rows: int
    size: int
    most: int
    most_size: int
    by: str
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One kind of record.

    `schema` names the contract's component that the public part must satisfy. `unique` keys refuse a second holder.
    `indexes` answer equality in the cost of the page alone; of `pairs`, each `a+b` of two of them, both at once.
    `defaults` are what members of the hidden part have that a record does not name.
    `sorts` are further orders besides the time of creation. `search` gives the folded text that `contains` looks in.
    `invalidates` names records of other tables whose live members (counters) this record feeds.
    `ring` says how many records are kept.
    `mirrors` are the members that show part of another record as it is now.
    `lived` are the indexes that rules read at every turn while a past is lived, and `is_moving` tells of a record then
    whether it will soon change again.
    """

    schema: str
    created: str = "createdAt"
    unique: Mapping[str, Extract] = field(default_factory=_none)
    indexes: Mapping[str, Member] = field(default_factory=_none)
    pairs: tuple[str, ...] = ()
    sorts: Mapping[str, Extract] = field(default_factory=_none)
    search: Mapping[str, Extract] = field(default_factory=_none)
    sums: Mapping[str, Sum] = field(default_factory=_none)
    distinct: Mapping[str, Distinct] = field(default_factory=_none)
    invalidates: Mapping[str, Extract] = field(default_factory=_none)
    defaults: Mapping[str, str | int | None] = field(default_factory=_none)
    mirrors: Mapping[str, Mirror] = field(default_factory=_none)
    live: bool = False
    ring: Ring | None = None
    lived: tuple[str, ...] = ()
    is_moving: Callable[[Body, Body], bool] | None = None

    def __post_init__(self) -> None:
        """Indexes of the public part come first: a record's values are read side by side."""
        in_order = sorted(self.indexes.items(), key=lambda index: index[1].side)
        object.__setattr__(self, "indexes", MappingProxyType(dict(in_order)))


def public(name: str) -> Member:
    """A member of the public part."""
    return Member(0, name)


def hidden(name: str) -> Member:
    """A member of the hidden part."""
    return Member(1, name)
