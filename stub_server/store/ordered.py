"""Sorted keys: a plain list while short or changed at its end alone, else a SortedList.

So a page costs the same at any depth and size, and so does a change.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from sortedcontainers import SortedList

LONG = 32_768  # a change so far from the end moves a quarter of a megabyte: some microseconds, and no more
_FEW = 16  # so many keys at the end are looked through first
_MERGED = 100  # to merge goes through all keys, as many of them as it takes to find a hundredth of their places
# `type(...) is list` is the fastest test of which it is; mypy does not narrow the other half of the union by it, and
# wherever that half is used it has to be told so.
_GET: Callable[[dict[Hashable, Any], Hashable], Any] = dict.get
Keys: TypeAlias = "list[Any] | SortedList[Any]"


def add(keys: Keys, key: Any) -> Keys:
    """Put a key in its place; answers the container to keep, which changes once when a long list needs a better one."""
    if type(keys) is list:
        if not keys or key > keys[-1]:
            keys.append(key)
            return keys
        size = len(keys)
        if size <= LONG or key > keys[-LONG]:
            insort(keys, key)
            return keys
        keys = SortedList(keys)
    keys.add(key)  # type: ignore[union-attr]
    return keys


def larger(keys: Keys, key: Any) -> int:
    """How many keys are larger; quick where few are."""
    size = len(keys)
    if type(keys) is not list:
        return size - position(keys, key)
    if not size or key > keys[-1]:
        return 0
    return size - bisect_left(keys, key, size - _FEW if size > _FEW and key > keys[-_FEW] else 0)


def add_late(keys: Keys, key: Any, most: int) -> Keys:
    """`add` where at most `most` keys are larger: those of new records, of which few have come within a millisecond."""
    if type(keys) is not list or most > LONG:
        return add(keys, key)
    if most:
        size = len(keys)
        insort(keys, key, size - most if size > most else 0)
    else:
        keys.append(key)
    return keys


def remove(keys: Keys, key: Any) -> Keys:
    """Take a key out; it must be there. Answers the container to keep."""
    if type(keys) is list:
        at = bisect_left(keys, key)
        if at == len(keys) or keys[at] != key:
            raise KeyError(key)
        if len(keys) - at <= LONG:
            del keys[at]
            return keys
        keys = SortedList(keys)
    keys.remove(key)
    return keys


def position(keys: Keys, key: Any) -> int:
    """How many keys are smaller."""
    return bisect_left(keys, key) if type(keys) is list else keys.bisect_left(key)  # type: ignore[union-attr]


def holds(keys: Keys, key: Any) -> bool:
    """Whether the key is there."""
    if type(keys) is list:
        at = bisect_left(keys, key)
        return at < len(keys) and keys[at] == key
    return key in keys


def cut(keys: Keys, start: int, stop: int, *, newest_first: bool) -> list[Any]:
    """The keys at positions start (inclusive) to stop (exclusive), read upwards or downwards."""
    if type(keys) is list:
        part = keys[start:stop]
        if newest_first:
            part.reverse()
        return part
    return list(keys.islice(start, stop, reverse=newest_first))  # type: ignore[union-attr]


def enter(indexes: Sequence[dict[Hashable, Keys]], values: Sequence[Hashable], key: Any, later: int) -> None:
    """Put a key into the bucket of its value in each index; at most `later` keys of a bucket are larger."""
    if later > LONG:
        for index, value in zip(indexes, values, strict=True):
            if value is not None:
                index[value] = add(index.get(value) or [], key)
        return
    missing = 0
    for bucket in map(_GET, indexes, values):  # called for every new record: a loop without more than it needs
        if bucket is None:
            missing += 1
        elif type(bucket) is not list:
            bucket.add(key)
        elif later:
            size = len(bucket)
            insort(bucket, key, size - later if size > later else 0)
        else:
            bucket.append(key)
    if missing > values.count(None):
        for index, value in zip(indexes, values, strict=True):
            if value is not None and value not in index:
                index[value] = [key]


def fill(index: dict[Hashable, Keys], values: Iterable[Hashable], keys: Iterable[Any]) -> None:
    """Put keys at the ends of the buckets of their values, which are lists as long as nothing else was done."""
    for value, key in zip(values, keys, strict=True):
        if value is not None:
            bucket = index.get(value)
            if bucket is None:
                index[value] = [key]
            else:
                bucket.append(key)


def joined(keys: Keys, pairs: list[tuple[Any, int]]) -> Keys:
    """The sorted pairs and others, which come in any order and are the container's own from now on."""
    if len(pairs) <= _FEW or len(pairs) * _MERGED < len(keys):
        for pair in pairs:
            keys = add(keys, pair)
        return keys
    # Stable, by the second part and then by the first: cheaper than comparing pair with pair.
    pairs.sort(key=itemgetter(1))
    pairs.sort(key=itemgetter(0))
    if not keys:
        return pairs
    if type(keys) is list:
        keys.extend(pairs)
        keys.sort()  # of two runs: it only merges them
    else:
        keys.update(pairs)  # type: ignore[union-attr]
    return keys


def duplicate(keys: Keys) -> Keys:
    """An independent copy."""
    return keys.copy()


def union(many: Iterable[Keys]) -> list[Any]:
    """All keys of several containers, in order."""
    merged: set[Any] = set()
    for keys in many:
        merged.update(keys)
    return sorted(merged)


def intersection(first: Keys, others: Iterable[Keys]) -> list[Any]:
    """The keys of `first` that all others hold too, in order."""
    kept = list(first)
    for other in others:
        # Testing each key costs a search; past some ratio reading the longer one once is cheaper.
        if len(kept) * 40 < len(other):
            kept = [key for key in kept if holds(other, key)]
        else:
            kept = sorted(set(kept).intersection(other))
    return kept


def walk(keys: Keys, *, newest_first: bool) -> Iterator[Any]:
    """Every key, upwards or downwards."""
    return iter(reversed(keys)) if newest_first else iter(keys)
