"""Putting in order what a load has gathered: the lists of a table's indexes, each at the cost of the whole load."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from . import ordered
from .ordered import Keys
from .spec import TableSpec

Parts = dict[tuple[str, Hashable], list[Keys]]


def sort_gathered(spec: TableSpec, indexes: Mapping[str, dict[Hashable, Keys]], order: Keys) -> None:
    """Sort all lists of a table; what consists of lists that are sorted already is only merged."""
    parts: Parts = {}
    for pair in spec.pairs:
        _sort_pair(indexes[pair], pair, parts)
    for name in spec.indexes:
        for value, bucket in indexes[name].items():
            ordered.sort(bucket, parts.get((name, value), ()))
    whole = min((indexes[name] for name in spec.indexes), key=len, default={})
    ordered.sort(order, list(whole.values()))


def _sort_pair(index: Mapping[Hashable, Keys], pair: str, parts: Parts) -> None:
    """Sort the buckets of a pair, and note which buckets of single indexes they are the parts of."""
    fresh = [(at, name) for at, name in enumerate(pair.split("+")) if all(name != known for known, _ in parts)]
    few = len(index) <= ordered.FEW_PARTS
    for values, bucket in index.items():
        ordered.sort(bucket)
        if few:
            assert isinstance(values, tuple)  # the two values of a pair
            for at, name in fresh:
                parts.setdefault((name, values[at]), []).append(bucket)
