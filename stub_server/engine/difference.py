"""What separates a world as it is from an earlier state: for every record that differs the version now and then."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from ..kernel.record import Record
from ..store.memory import Merchant, Store, Usage
from .log import Log
from .sandbox import Sandbox
from .step import Drop, Part, Put, Step, Used

CAUGHT_UP = 64  # steps between two pauses
COMPARED = 512  # records between two pauses, where each is looked at and no more
Versions: TypeAlias = dict[int, list[Record | None]]
"""By the key of a record, its version now and then; None where there is none."""


@dataclass(slots=True)
class Changed:
    """What differs in one merchant's store: records by table, usage by key."""

    merchant: Merchant
    tables: dict[str, Versions] = field(default_factory=dict)
    used: dict[str, list[Usage | None]] = field(default_factory=dict)


class Difference:
    """Begins as nothing and grows: backwards by `back`, and by `ahead` while the world goes on.

    `number` is the newest step of what counts as now, `merchants` the ids that the world knew then, in order.
    """

    def __init__(self, number: int, merchants: Iterable[str]) -> None:
        self.number, self.merchants = number, list(merchants)
        self._stores: dict[str, Changed] = {}

    # -- growing

    def back(self, step: Step) -> Generator[None, None, None]:
        """Take in the step before those that are in already, with pauses."""
        for merchant, puts, drops, used in _parts(step):
            changed = self.of(merchant)
            for count, (name, record, before) in enumerate(puts):
                _then(changed.tables.setdefault(name, {}), record.key, record, before)
                if count % COMPARED == COMPARED - 1:
                    yield
            for drop in drops:
                _then(changed.tables.setdefault(drop.table, {}), drop.record.key, None, drop.record)
            for key_id, after, before_use in used:
                changed.used.setdefault(key_id, [after, None])[1] = before_use
        if step.restored is not None:
            self.merchants = list(step.restored.merchants_before)
        elif step.opens_store:
            self.merchants.remove(step.merchant.id)

    def ahead(self, log: Log) -> Generator[None, None, bool]:
        """Take in the steps up to the newest of now, with pauses; whether they are all still kept.

        Those that are made in the pauses wait for the next call: a busy world would never be caught up with.
        """
        newest = log.number
        while self.number < newest:
            if log.oldest > self.number + 1:
                return False
            first = self.number + 1 - log.oldest
            for step in list(islice(log, first, first + CAUGHT_UP)):
                for merchant, puts, drops, used in _parts(step):
                    changed = self.of(merchant)
                    for name, record, before in puts:
                        _now(changed.tables.setdefault(name, {}), record.key, record, before)
                    for drop in drops:
                        _now(changed.tables.setdefault(drop.table, {}), drop.record.key, None, drop.record)
                    for key_id, after, before_use in used:
                        changed.used.setdefault(key_id, [None, before_use])[0] = after
                self.number = step.number
            yield
        return True

    def of(self, merchant: Merchant) -> Changed:
        """What differs in a merchant's store."""
        found = self._stores.get(merchant.id)
        if found is None:
            found = self._stores[merchant.id] = Changed(merchant)
        return found

    # -- reading

    def parts(self, stores: Mapping[str, Store]) -> Generator[None, None, tuple[tuple[Part, ...], int]]:
        """What a step changes that goes from `stores` to the state then, and about how many bytes it names."""
        parts, size = [], 0
        for ident, store in stores.items():
            if ident not in self.merchants:
                self.of(store.merchant)
        for ident, changed in self._stores.items():
            puts: list[Put] = []
            drops: list[Drop] = []
            for name, versions in changed.tables.items():
                for count, (now, then) in enumerate(versions.values()):
                    if now is not then:
                        size += _size(now) + _size(then)
                        if then is not None:
                            puts.append((name, then, now))
                        elif now is not None:
                            drops.append(Drop(name, now))
                    if count % COMPARED == COMPARED - 1:
                        yield
            used = tuple([Used(key, then, now) for key, (now, then) in changed.used.items() if now != then])
            was, is_ = ident in stores, ident in self.merchants
            if (was or is_) and (was != is_ or puts or drops or used):
                parts.append(Part(changed.merchant, not was, not is_, tuple(puts), tuple(drops), used))
        return tuple(parts), size


def between(now: Sandbox, then: Sandbox) -> Generator[None, None, Difference]:
    """What separates two worlds of one origin, record by record, with pauses. Neither is changed meanwhile."""
    found = Difference(now.log.number, then.stores)
    nobody: dict[int, Record] = {}
    for ident in dict.fromkeys((*now.stores, *then.stores)):
        here, there = now.stores.get(ident), then.stores.get(ident)
        store = here or there
        assert store is not None  # one of them has it
        changed = found.of(store.merchant)
        for name in store.tables:
            mine = nobody if here is None else here.tables[name].rows
            theirs = nobody if there is None else there.tables[name].rows
            if mine is theirs:
                continue
            versions = changed.tables[name] = {}
            for key, record in _in_lots(mine):
                if key is None:
                    yield
                elif (other := theirs.get(key)) is not record:
                    versions[key] = [record, other]
            for key, record in _in_lots(theirs):
                if key is None:
                    yield
                elif key not in mine:
                    versions[key] = [None, record]
        before, after = ({} if side is None else side.usage for side in (here, there))
        for key_id in {**before, **after}:
            changed.used[key_id] = [before.get(key_id), after.get(key_id)]
    return found


def _in_lots(rows: dict[int, Record]) -> Iterator[tuple[int | None, Record | None]]:
    """The records by key, and a pause after each lot."""
    for count, item in enumerate(rows.items()):
        yield item
        if count % COMPARED == COMPARED - 1:
            yield None, None


def _parts(step: Step) -> Iterator[tuple[Merchant, tuple[Put, ...], tuple[Drop, ...], tuple[Used, ...]]]:
    """What a step changed, merchant by merchant."""
    yield step.merchant, step.puts, step.drops, step.used
    if step.restored is not None:
        for part in step.restored.parts:
            yield part.merchant, part.puts, part.drops, part.used


def _then(versions: Versions, key: int, now: Record | None, then: Record | None) -> None:
    """A record's earlier version; `now` is the present one, unless a later step has said another."""
    known = versions.get(key)
    if known is None:
        versions[key] = [now, then]
    else:
        known[1] = then


def _now(versions: Versions, key: int, now: Record | None, then: Record | None) -> None:
    """A record's later version; `then` is the one before, unless an earlier step has said another."""
    known = versions.get(key)
    if known is None:
        versions[key] = [now, then]
    else:
        known[0] = now


def _size(record: Record | None) -> int:
    return 0 if record is None else record.size
