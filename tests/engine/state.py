"""What a world is, as plain data that two worlds can be compared by, and that it is its origin and
its steps.
"""

from collections.abc import Iterator
from copy import copy, deepcopy
from typing import Any, cast

import orjson

from stub_server.core.ids import NextIds
from stub_server.core.slices import at_once
from stub_server.engine.draft import Draft
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.step import Cause, Step
from stub_server.engine.tables.query import Query, select
from stub_server.engine.tables.store import Store
from stub_server.engine.tables.table import Table

from .inside import Inside

Facts = dict[str, Any]


def state(world: Sandbox) -> Facts:
    """Everything that steps change, indexes and sums included; what is only remembered to save work
    is not in it.
    """
    coming = NextIds(world.ids)
    return {
        "clock": world.clock.recorded,
        "position": world.ids.position,
        "next ids": (
            coming.uuid(),
            coming.code(),
            coming.event(),
            coming.alnum(11),
            coming.secret(24),
        ),
        "next secret": NextIds(world.ids).secret_bytes(),
        "events": list(world.events),
        "events raised": world.events.raised,
        "timers": world.timers.pending(),
        "number of timers": (len(world.timers), world.timers.last, world.timers.next_job()),
        "replies": list(world.replies),
        "merchants": [store.merchant for store in world.stores.values()],
        **{
            f"{ident} {name}": value
            for ident, store in world.stores.items()
            for name, value in _store(store)
        },
    }


def _store(store: Store) -> Iterator[tuple[str, Any]]:
    yield "usage", dict(store.usage)
    yield "unrecorded usage", dict(store.unrecorded)
    for name, table in store.tables.items():
        for part, value in derived(table).items():
            yield f"{name} {part}", value


def derived(table: Table) -> Facts:
    """A table's rows and all that follows from them."""
    return {
        "rows": dict(table.rows),
        "keys": dict(table.keys),
        "order": list(table.order),
        "unique": {name: dict(held) for name, held in table.unique.items()},
        "sort orders": {name: list(order.data) for name, order in table.views.sorts.items()},
        # A group that nothing is left of may stand there empty.
        "parts": {
            name: {group: copy(value) for group, value in part.data.items() if value}
            for name, part in table.views.parts.items()
        },
    }


def rebuilt(table: Table) -> Table:
    """A table of the same records, with everything else derived anew."""
    twin = Table(table.name, table.spec, table.check)
    for record in table.rows.values():
        twin.replace(None, twin.parse(record))
    return twin


def differences(expected: Facts, actual: Facts) -> dict[str, tuple[Any, Any]]:
    """The facts that are not the same, by name; empty for equal worlds."""
    names = [*expected, *(name for name in actual if name not in expected)]
    return {
        name: (expected.get(name, "absent"), actual.get(name, "absent"))
        for name in names
        if name not in expected or name not in actual or expected[name] != actual[name]
    }


def same(expected: Facts, actual: Facts) -> None:
    """Hold two worlds to be equal; names what is not, and shows the first of it."""
    found = differences(expected, actual)
    shown = [
        f"{name}\n  expected {str(pair[0])[:600]}\n  actual   {str(pair[1])[:600]}"
        for name, pair in found.items()
    ]
    assert not found, f"{len(found)} facts differ: {', '.join(sorted(found)[:20])}\n" + "\n".join(
        shown[:4]
    )


def stale(world: Sandbox) -> dict[str, tuple[Any, Any]]:
    """What is kept beside the rows and does not follow from them: (what follows, what is kept)."""
    found: dict[str, tuple[Any, Any]] = {}
    for ident, store in world.stores.items():
        for name, table in store.tables.items():
            wrong = differences(derived(rebuilt(table)), derived(table))
            found |= {f"{ident} {name} {part}": pair for part, pair in wrong.items()}
            for record in table.rows.values():
                parsed = orjson.loads(record.public)
                shown = table.peek(record.id)
                if parsed != shown:  # somebody has written into what is for reading alone
                    found[f"{ident} {name} {record.id} parsed"] = parsed, shown
            for asked, held in table.lists.items():
                fresh = _matching(table, asked)
                *_, sort, _ = cast("tuple[Any, ...]", asked)
                if sort is not None:  # each behind the value by which it is sorted
                    held = [key for _, key in held]
                if fresh != held:
                    found[f"{ident} {name} list {asked}"] = fresh, held
    return found


def _matching(table: Table, asked: Any) -> list[int]:
    """What a remembered list holds, found in a table that was made anew."""
    conditions, between, since, until, sort, newest_first = asked
    query = Query(
        list(conditions),
        between=between,
        since=since,
        until=until,
        sort=sort,
        newest_first=newest_first,
        limit=len(table),
    )
    keys = [record.key for record in at_once(select(rebuilt(table), query))[0]]
    return keys[::-1] if newest_first else keys


# -- steps


def token_of(inside: Inside, world: Sandbox) -> str:
    """A token of the seeded merchant with every scope."""
    return inside.app.server.ready_token(world)


def unfold(world: Sandbox, step: Step) -> None:
    """Undo the newest step of a world."""
    world.fold(step.mirrored)


def refolded(world: Sandbox, origin: Sandbox) -> None:
    """Hold a world to be its origin and its steps: folded by another one, and undone and done
    again.

    Steps are copied before, so that nothing is shared with the world.
    """
    _record_usage(world)
    assert 1 == world.log.oldest, "the log has let steps go"
    steps = deepcopy(list(world.log))
    expected = state(world)
    begun = state(origin)
    assert {} == stale(world)
    for step in steps:
        origin.fold(step)
    same(expected, state(origin))
    assert {} == stale(origin)
    for step in reversed(steps):
        unfold(world, step)
    same(begun, state(world))
    assert {} == stale(world)
    for step in steps:
        world.fold(step)
    same(expected, state(world))
    assert {} == stale(world)


def _record_usage(world: Sandbox) -> None:
    """Record what no step has recorded yet: a step for each merchant whose keys were used since
    their last one.
    """
    for store in world.stores.values():
        if store.unrecorded:
            draft = Draft(world, store, Cause("clock", "", "usage"))
            draft.clock = world.clock.at(draft.now)
            draft.record()
