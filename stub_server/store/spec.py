"""What a table is told about its records: keys, indexes, sums, and which part of them lives elsewhere."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..kernel.record import Body

Extract = Callable[[Body, Body], Any]
"""(public, hidden) -> a value; None stands for "not in this index"."""


def _none() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sum:
    """A running total by group, kept with every write: `value` of each record, added under `group`."""

    group: Extract
    value: Callable[[Body, Body], int]


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many different members each group has; a record with member None does not count."""

    group: Extract
    member: Extract


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One kind of record.

    `schema` names the contract's component that the public part must satisfy. `unique` keys refuse a second holder.
    `indexes` answer equality in the cost of the page alone; a name `a+b` answers two filters at once.
    `sorts` are further orders besides the time of creation. `search` gives the folded text that `contains` looks in.
    `touches` names records of other tables whose live members (counters) this record feeds.
    """

    schema: str
    created: str = "createdAt"
    unique: Mapping[str, Extract] = field(default_factory=_none)
    indexes: Mapping[str, Extract] = field(default_factory=_none)
    sorts: Mapping[str, Extract] = field(default_factory=_none)
    search: Mapping[str, Extract] = field(default_factory=_none)
    sums: Mapping[str, Sum] = field(default_factory=_none)
    distinct: Mapping[str, Distinct] = field(default_factory=_none)
    touches: Mapping[str, Extract] = field(default_factory=_none)
    live: bool = False
    ring: int | None = None


def public(*path: str) -> Extract:
    """A member of the public part."""
    return _at(0, path)


def hidden(*path: str) -> Extract:
    """A member of the hidden part."""
    return _at(1, path)


def pair(first: Extract, second: Extract) -> Extract:
    """Two members as one key; None when either is missing."""

    def extract(shown: Body, kept: Body) -> Hashable:
        a, b = first(shown, kept), second(shown, kept)
        return None if a is None or b is None else (a, b)

    return extract


def _at(side: int, path: tuple[str, ...]) -> Extract:
    if len(path) == 1:
        (name,) = path
        if side == 0:
            return lambda shown, kept: shown.get(name)
        return lambda shown, kept: kept.get(name)

    def extract(shown: Body, kept: Body) -> Any:
        value: Any = (shown, kept)[side]
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return extract
