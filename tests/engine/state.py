"""What a world is, as plain data that two worlds can be compared by: its state, and every answer it gives."""

from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import patch

import orjson

from stub_server.core.clock import Clock
from stub_server.core.ids import NextIds
from stub_server.core.slices import BackgroundWorker, at_once
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.step import Step
from stub_server.engine.tables.memory import Store
from stub_server.engine.tables.query import Query, select
from stub_server.engine.tables.table import Table
from stub_server.server.layers import selection

from .inside import Inside
from .small import Wall, serve

Facts = dict[str, Any]
LISTS: Mapping[str, tuple[str, ...]] = {
    "/v2/customers": ("", "sort=name", "type=individual&sort=-name", "type=individual&document_type=cpf"),
    "/v2/projects": ("", "sort=-name", "status=active&sort=name", "status=active&visibility=public"),
    "/v2/plans": ("", "sort=amount", "status=active&sort=-amount", "status=active&billing_type=recurring"),
    "/v2/products": ("", "sort=name", "status=active&type=course", "status=active&sort=name"),
    "/v2/orders": (
        "",
        "sort=totalAmount",
        "status=paid&sort=-totalAmount",
        "status=pending&paymentMethod=pix",
        "status=canceled",
    ),
    "/v2/subscriptions": ("", "sort=next_billing_at", "status=active&sort=-next_billing_at", "status=canceled"),
    "/v2/webhooks": ("", "is_active=true"),
    "/v2/webhooks/logs": ("", "status=pending", "status=canceled&event_type=order.created"),
    "/api-keys": ("", "is_active=true&sort=name", "sort=-name"),
}
"""What is asked of every list: plainly, in another order, and by filters that together need a view."""
ITEMS: Mapping[str, tuple[str, ...]] = {
    "customers": ("/v2/customers/{}",),
    "projects": ("/v2/projects/{}", "/v2/projects/{}/stats", "/v2/orders?projectId={}&status=paid"),
    "plans": ("/v2/plans/{}", "/v2/subscriptions?planId={}&sort=next_billing_at"),
    "products": ("/v2/products/{}",),
    "orders": ("/v2/orders/{}", "/_sandbox/orders/{}"),
    "subscriptions": ("/v2/subscriptions?limit=100",),
    "webhooks": ("/v2/webhooks/{}", "/v2/webhooks/{}/logs"),
    "webhook_logs": ("/v2/webhooks/logs/{}",),
    "api_keys": (),
}
CONTROL = ("/_sandbox/clock", "/_sandbox/events?limit=100", "/_sandbox/health")


# -- state


def state(world: Sandbox) -> Facts:
    """Everything that steps change, indexes and sums included; what is only remembered to save work is not in it."""
    coming = NextIds(world.ids)
    return {
        "clock": world.recorded_clock,
        "position": world.ids.position,
        "next ids": (coming.uuid(), coming.code(), coming.event(), coming.alnum(11), coming.secret(24)),
        "next secret": NextIds(world.ids).secret_bytes(),
        "events": list(world.events),
        "events raised": world.events.raised,
        "timers": world.timers.pending(),
        "number of timers": (len(world.timers), world.timers.last, world.timers.next_due()),
        "replies": list(world.replies.items()),
        "merchants": [store.merchant for store in world.stores.values()],
        **{f"{ident} {name}": value for ident, store in world.stores.items() for name, value in _store(store)},
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
        "indexes": {
            name: {value: list(bucket) for value, bucket in index.data.items()}
            for name, index in table.views.indexes.items()
        },
        "sort orders": {name: list(table.views.sorts[name].data) for name in table.spec.sorts},
        "texts": {name: dict(texts.data) for name, texts in table.views.texts.items()},
        # A sum that has come back to nothing may stand there as 0.
        "sums": {
            name: {group: amount for group, amount in sums.data.items() if amount}
            for name, sums in table.views.sums.items()
        },
        "distinct": {
            name: {group: dict(members) for group, members in groups.data.items() if members}
            for name, groups in table.views.distinct.items()
        },
    }


def rebuilt(table: Table) -> Table:
    """A table of the same records, with everything else derived anew."""
    return Table(table.name, table.spec, table.check, table.rows)


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
        f"{name}\n  expected {str(pair[0])[:600]}\n  actual   {str(pair[1])[:600]}" for name, pair in found.items()
    ]
    assert not found, f"{len(found)} facts differ: {', '.join(sorted(found)[:20])}\n" + "\n".join(shown[:4])


def stale(world: Sandbox) -> dict[str, tuple[Any, Any]]:
    """What is kept beside the rows and does not follow from them: (what follows, what is kept)."""
    found: dict[str, tuple[Any, Any]] = {}
    for ident, store in world.stores.items():
        if not store.usage.keys() <= store.api_keys.keys.keys():
            found[f"{ident} usage"] = list(store.api_keys.keys), list(store.usage)
        for name, table in store.tables.items():
            wrong = differences(derived(rebuilt(table)), derived(table))
            found |= {f"{ident} {name} {part}": pair for part, pair in wrong.items()}
            for row in table.parsed.values():
                parts = orjson.loads(row.record.public), orjson.loads(row.record.hidden)
                if parts != (row.public, row.hidden):  # somebody has written into what is for reading alone
                    found[f"{ident} {name} {row.id} parsed"] = parts, (row.public, row.hidden)
            for asked, (keys, start, stop) in table.lists.items():
                fresh = _matching(table, asked)
                if fresh != keys[start:stop]:
                    found[f"{ident} {name} list {asked}"] = fresh, keys[start:stop]
    return found


def _matching(table: Table, asked: Any) -> list[int]:
    """What a remembered list holds, found in a table that was made anew."""
    conditions, between, since, until, sort = asked
    query = Query(
        list(conditions),
        between=between,
        since=since,
        until=until,
        sort=sort,
        newest_first=False,
        limit=len(table),
    )
    return [record.key for record in select(rebuilt(table), query)[0]]


# -- answers


async def _do_nothing(world: Sandbox, worker: BackgroundWorker) -> None:
    """What is due waits."""


class _At:
    """A clock that stands while a world is read, and its wall with it; no job is done meanwhile."""

    def __init__(self, clock: Clock, now: int) -> None:
        self._clock, self._now = clock, now
        self._was, self._wall = clock.state, clock.wall

    def __enter__(self) -> None:
        self._clock.set(self._was._replace(now=self._now, frozen=True))
        self._clock.wall = Wall(self._now)

    def __exit__(self, *_: object) -> None:
        self._clock.set(self._was)
        self._clock.wall = self._wall


def answers(inside: Inside, world: Sandbox) -> Facts:
    """What every reading operation says of every record and list, at the instant of the newest step."""
    found: Facts = {}
    serve(inside.app, world)
    standing = patch.object(selection, "do_due", _do_nothing)
    with standing, _At(world.clock, world.recorded_clock.now):
        for path in CONTROL:
            found[path] = _said(inside, path, None)
        for ident, store in world.stores.items():
            token = token_of(inside, world, ident)
            for path in _paths(store):
                found[f"{ident} {path}"] = _said(inside, path, token)
    return found


def token_of(inside: Inside, world: Sandbox, merchant_id: str) -> str:
    """A token of a merchant with every scope."""
    user = world.store_of(merchant_id).merchant.user_id
    return inside.app.server.tokens.issue(world, merchant_id, user, ["*"], 3600)[0]


def _said(inside: Inside, path: str, token: str | None) -> tuple[int, bytes]:
    answer = inside.ask("GET", path, token=token)
    assert answer.status == 200, (path, answer)
    return answer.status, answer.body


def _paths(store: Store) -> Iterator[str]:
    for path, queries in LISTS.items():
        for query in queries:
            yield f"{path}?limit=100&{query}" if query else path
    for name, forms in ITEMS.items():
        for record in list(store.tables[name].rows.values()):
            for form in forms:
                yield form.format(record.id)


def whole(inside: Inside, world: Sandbox) -> Facts:
    """State and answers of a world."""
    return state(world) | answers(inside, world)


def unfold(world: Sandbox, step: Step) -> None:
    """Undo the newest step of a world."""
    before = None if step.restored is None else step.restored.merchants_before
    at_once(world.change([part.mirrored for part in step.parts], before))
    world.unfold_rest(step)
