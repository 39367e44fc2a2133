"""Views: lists that were asked for once, kept and brought up to date when they are read again.

An index answers one filter. Several filters at once, or a filter in another order than that of creation, are answered
by a view: made when first asked for, at the cost of the records it looks through. A write only notes what it changed;
the next reading of a view brings it up to date. Short lists need no view, and a table keeps only those last
asked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from . import ordered
from .ordered import Keys

MOST = 24
MOST_NOTED = 2_000  # changes; a view that nobody has read for so long is forgotten

Conditions: TypeAlias = frozenset[tuple[str, frozenset[Hashable]]]
"""Names of indexes and, for each, the values of which a record has one."""


class Noted(NamedTuple):
    """A change of one record: its values in the indexes before and after, None where there is no such version.

    `ranks` are its values in the further sort orders, before and after, where any view is sorted by one.
    """

    key: int
    before: Sequence[Hashable] | None
    after: Sequence[Hashable] | None
    ranks: tuple[Mapping[str, Any], Mapping[str, Any]]


class View:
    """The records that keep some conditions, by creation or, with `sort`, by its value.

    `conditions` name the positions of index values. `seen` is how many of the noted changes the view has taken over.
    """

    __slots__ = ("conditions", "keys", "seen", "sort")

    def __init__(self, conditions: list[tuple[int, frozenset[Hashable]]], sort: str | None, keys: Keys) -> None:
        self.conditions, self.sort, self.keys, self.seen = conditions, sort, keys, 0

    def catch_up(self, noted: Sequence[Noted]) -> None:
        """Take over what has changed since the view was last read."""
        for key, before, after, (rank, next_rank) in noted[self.seen :]:
            was = self._place(key, before, rank)
            now = self._place(key, after, next_rank)
            if was != now:
                if was is not None:
                    self.keys = ordered.remove(self.keys, was)
                if now is not None:
                    self.keys = ordered.add(self.keys, now)
        self.seen = len(noted)

    def _place(self, key: int, values: Sequence[Hashable] | None, ranks: Mapping[str, Any]) -> Any:
        """Where a record of these values stands; None when it does not belong here."""
        if values is None:
            return None
        for position, wanted in self.conditions:
            if values[position] not in wanted:
                return None
        return key if self.sort is None else (ranks[self.sort], key)


class Views:
    """The views of one table, `held` by what was asked. `is_sorted` tells whether one has a sort order of its own."""

    __slots__ = ("_noted", "_positions", "held", "is_sorted")

    def __init__(self, positions: Mapping[str, int]) -> None:
        """`positions` says where each index's value stands among a record's values."""
        self._positions = positions
        self.held: dict[tuple[Conditions, str | None], View] = {}
        self._noted: list[Noted] = []
        self.is_sorted = False

    def __bool__(self) -> bool:
        return bool(self.held)

    def note(self, change: Noted) -> None:
        """Remember a change for the views that are read later."""
        self._noted.append(change)
        if len(self._noted) >= MOST_NOTED:
            self.held = {asked: view for asked, view in self.held.items() if view.seen}
            self._rebase()

    def find(self, conditions: Conditions, sort: str | None) -> Keys | None:
        """The keys of a view that is kept, up to date."""
        view = self.held.pop((conditions, sort), None)
        if view is None:
            return None
        view.catch_up(self._noted)
        self.held[conditions, sort] = view  # the one last asked for goes last
        self._rebase()
        return view.keys

    def keep(self, conditions: Conditions, sort: str | None, keys: list[Any]) -> Keys:
        """Keep a view from now on; `keys` are in order."""
        named = [(self._positions[name], wanted) for name, wanted in conditions]
        view = self.held[conditions, sort] = View(named, sort, keys)
        view.seen = len(self._noted)
        if sort is not None and not self.is_sorted:
            # Changes noted so far lack what this view is sorted by: no view may need them any more.
            self.is_sorted = True
            for other in self.held.values():
                other.catch_up(self._noted)
        if len(self.held) > MOST:
            del self.held[next(iter(self.held))]
        self._rebase()
        return view.keys

    def clear(self) -> None:
        """Forget all: they are made again when somebody asks."""
        self.held.clear()
        self._noted.clear()
        self.is_sorted = False

    def _rebase(self) -> None:
        """Forget the changes that every view has taken over."""
        common = min((view.seen for view in self.held.values()), default=len(self._noted))
        del self._noted[:common]
        for view in self.held.values():
            view.seen -= common
