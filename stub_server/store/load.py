"""Many new records on their way into a table: their keys are gathered as they come and put in order once."""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from operator import itemgetter
from typing import Any

from .ordered import Keys, merged
from .spec import TableSpec


class Load:
    """What a table's lists will gain."""

    __slots__ = ("_buckets", "indexes", "order", "sorts")

    def __init__(self, spec: TableSpec) -> None:
        self.order: list[int] = []
        self.indexes: dict[str, defaultdict[Hashable, list[int]]] = {
            name: defaultdict(list) for name in (*spec.indexes, *spec.pairs)
        }
        self._buckets = tuple(self.indexes.values())
        self.sorts: dict[str, list[tuple[Any, int]]] = {name: [] for name in spec.sorts}

    def take(self, key: int, values: Mapping[str, Hashable]) -> None:
        """Note a record's place and its value in each index, in the order of the indexes."""
        self.order.append(key)
        for buckets, value in zip(self._buckets, values.values(), strict=True):
            if value is not None:
                buckets[value].append(key)

    def settle(self, indexes: Mapping[str, dict[Hashable, Keys]], sorts: dict[str, Keys]) -> None:
        """Put what was gathered into a table's indexes and sort orders."""
        for name, buckets in self.indexes.items():
            index = indexes[name]
            while buckets:
                value, keys = buckets.popitem()
                index[value] = merged(index.get(value), keys)
        for name, gathered in self.sorts.items():
            # Stable, by the second part and then by the first: cheaper than comparing pair with pair.
            gathered.sort(key=itemgetter(1))
            gathered.sort(key=itemgetter(0))
            sorts[name] = merged(sorts[name], gathered)
            self.sorts[name] = []
