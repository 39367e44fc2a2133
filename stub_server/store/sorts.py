"""Further orders of a table besides that of creation: put in order when somebody reads them, not at every write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..kernel.record import Body
from . import ordered
from .ordered import Keys
from .spec import Parts, TableSpec, plain


class Sorts:
    """Pairs of value and key, by the value, for each of `sorts` of a table's spec.

    A new record is noted at the end of a list and goes to its place with the first reading after. So nobody who only
    writes pays for an order, and somebody who reads pays for what has come since.
    """

    __slots__ = ("_extracts", "_kept", "_new")

    def __init__(self, spec: TableSpec) -> None:
        self._extracts = {name: plain(extract) for name, extract in spec.sorts.items()}
        self._kept: dict[str, Keys] = {name: [] for name in spec.sorts}
        self._new: dict[str, list[Any]] = {name: [] for name in spec.sorts}

    def values(self, public: Body, hidden: Body) -> dict[str, Any]:
        """A record's value in each order."""
        return {name: extract(public, hidden) for name, extract in self._extracts.items()}

    def enter(self, key: int, public: Body, hidden: Body) -> None:
        """A record has come."""
        for name, extract in self._extracts.items():
            self._new[name].append((extract(public, hidden), key))

    def fill(self, keys: Iterable[int], parts: Sequence[Parts]) -> None:
        """Many records have come."""
        for name, extract in self._extracts.items():
            self._new[name].extend(zip([extract(*part) for part in parts], keys, strict=True))

    def move(self, key: int, before: tuple[Body, Body], after: tuple[Body, Body] | None) -> None:
        """A record has another version now; without any, it has gone."""
        for name, extract in self._extracts.items():
            value = extract(*before)
            changed = None if after is None else extract(*after)
            if changed != value:
                self._kept[name] = ordered.remove(self.read(name), (value, key))
                if changed is not None:
                    self._kept[name] = ordered.add(self._kept[name], (changed, key))

    def read(self, name: str) -> Keys:
        """All pairs in order; not to be changed."""
        new = self._new[name]
        if new:
            self._kept[name] = ordered.joined(self._kept[name], new)
            self._new[name] = []
        return self._kept[name]

    def settle(self) -> None:
        """Put every order in order now."""
        for name in self._new:
            self.read(name)

    def copy(self) -> Sorts:
        """An independent copy."""
        twin = Sorts.__new__(Sorts)
        twin._extracts = self._extracts
        twin._kept = {name: ordered.duplicate(keys) for name, keys in self._kept.items()}
        twin._new = {name: pairs.copy() for name, pairs in self._new.items()}
        return twin
