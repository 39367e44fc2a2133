"""Views: lists that somebody has asked for, kept in order from then on.

An index answers one filter. Several filters at once, or a filter in another order than that of creation, are answered
by a view: made when first asked for, at the cost of the records it looks through, and kept with every write after.
Short lists need none, and a table keeps only those last asked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

from . import ordered
from .ordered import Keys

MOST = 24

Conditions: TypeAlias = frozenset[tuple[str, frozenset[Hashable]]]
"""Names of indexes and, for each, the values of which a record has one."""


class View:
    """The records that keep some conditions, by creation or, with `sort`, by its value."""

    __slots__ = ("conditions", "keys", "sort")

    def __init__(self, conditions: Conditions, sort: str | None, keys: Keys) -> None:
        self.conditions, self.sort, self.keys = conditions, sort, keys

    def place(self, key: int, values: Mapping[str, Hashable], ranks: Mapping[str, Any]) -> Any:
        """Where a record of these values stands; None when it does not belong here."""
        for name, wanted in self.conditions:
            if values[name] not in wanted:
                return None
        return key if self.sort is None else (ranks[self.sort], key)


class Views:
    """The views of one table."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[tuple[Conditions, str | None], View] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def find(self, conditions: Conditions, sort: str | None) -> Keys | None:
        """The keys of a view that is kept."""
        view = self._held.pop((conditions, sort), None)
        if view is None:
            return None
        self._held[conditions, sort] = view  # the one last asked for goes last
        return view.keys

    def keep(self, conditions: Conditions, sort: str | None, keys: list[Any]) -> Keys:
        """Keep a view from now on; `keys` are in order."""
        view = self._held[conditions, sort] = View(conditions, sort, keys)
        if len(self._held) > MOST:
            del self._held[next(iter(self._held))]
        return view.keys

    def clear(self) -> None:
        """Forget all: they are made again when somebody asks."""
        self._held.clear()

    def enter(self, key: int, values: Mapping[str, Hashable], ranks: Mapping[str, Any]) -> None:
        """A record has come."""
        for view in self._held.values():
            place = view.place(key, values, ranks)
            if place is not None:
                view.keys = ordered.add(view.keys, place)

    def leave(self, key: int, values: Mapping[str, Hashable], ranks: Mapping[str, Any]) -> None:
        """A record has gone, or is about to come again with other values."""
        for view in self._held.values():
            place = view.place(key, values, ranks)
            if place is not None:
                view.keys = ordered.remove(view.keys, place)
