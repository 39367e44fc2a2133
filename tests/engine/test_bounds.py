"""The log of a world is bounded in steps and in bytes, and all logs together are; what is thrown
away gives it back.
"""

import asyncio
import json
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from stub_server.app import create_app
from stub_server.engine import deliveries
from stub_server.engine import kept as logs
from stub_server.engine.kept import Budget, Journal
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.tables.table import size_of
from stub_server.server.layers.security import _key_of
from stub_server.server.sandboxes import making

from ..support.live import FROZEN
from ..support.worlds import first_used
from .inside import Answer, Inside
from .state import unfold

Start = Callable[[int], Inside]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """`start(history)`: a server over an empty world that keeps so many steps."""
    made = []
    # Requests would take bytes of the same budget.
    monkeypatch.setattr(making, "Journal", lambda most, budget: Journal(most, Budget()))

    def begin(history: int) -> Inside:
        made.append(Inside(create_app(replace(FROZEN, scenario="empty", history=history))))
        return made[-1]

    yield begin
    for inside in made:
        inside.close()


def create(
    inside: Inside, number: int, sandbox: str = "default", size: int = 0, idem: str | None = None
) -> Answer:
    """A step of one version, larger by a text of that size."""
    world = world_of(inside, sandbox)
    body = {"name": f"Clube {number}", "description": "x" * size}
    token = inside.app.server.ready_token(world)
    answer = inside.ask("POST", f"/s/{sandbox}/v2/projects", body, token, idem)
    assert 201 == answer.status, answer
    return answer


def world_of(inside: Inside, sandbox: str) -> Sandbox:
    """A world by its name, made at its first mention."""
    return first_used(inside.app.sandboxes, sandbox)


def budget_of(inside: Inside) -> Budget:
    """What the logs of a server share."""
    return inside.app.sandboxes.default.log.budget


def bytes_of(*worlds: Sandbox) -> int:
    """What the kept steps of some worlds take."""
    return sum(step.size for world in worlds for step in world.log)


@pytest.mark.promise("steps")
@pytest.mark.check
def test_a_world_keeps_so_many_bytes(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps that is: of large ones few, of one that is larger than all there
    may be, none.
    """
    inside = start(100)
    world = inside.app.sandboxes.default
    create(inside, 0)
    small = bytes_of(world)
    monkeypatch.setattr(logs, "MOST_BYTES", 10 * small)
    for number in range(1, 30):
        create(inside, number)
        assert bytes_of(world) <= 10 * small
    assert 8 <= len(world.log) <= 10
    create(inside, 30, size=400)
    assert bytes_of(world) <= 10 * small
    assert list(range(32 - len(world.log), 32)) == [step.number for step in world.log]
    monkeypatch.setattr(logs, "MOST_BYTES", small)
    create(inside, 31, size=400)
    assert (32, 0, 0) == (world.log.number, len(world.log), world.log.size)
    create(inside, 32)
    assert 33 == len(world.store.projects)
    triggered = {"type": "project.updated", "overrides": {"description": "x" * 9_999}}
    assert 201 == inside.ask("POST", "/_sandbox/events", triggered).status
    assert (34, 0) == (world.log.number, len(world.log))


@pytest.mark.promise("deliveries")
def test_deliveries_are_kept_up_to_so_many_bytes(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its payload. The oldest go, and undoing has them again."""
    monkeypatch.setattr(deliveries, "LOG_BYTES", 200_000)
    inside = start(100)
    world = inside.app.sandboxes.default
    token = inside.app.server.ready_token(world)
    for number in range(5):
        hook = {"url": f"http://127.0.0.1:9/{number}", "events": ["project.*"]}
        assert 201 == inside.ask("POST", "/v2/webhooks", hook, token).status
    sizes = []
    for number in range(30):
        body = {"name": f"Clube {number}", "long_description": "x" * 10_000}
        assert 201 == inside.ask("POST", "/v2/projects", body, token).status
        logs = world.store.webhook_logs
        rows = logs.rows.values()
        sizes.append(sum(map(size_of, rows)))
        assert sizes[-1] == logs.size <= 200_000
    assert 100_000 < sizes[-1]
    newest = {json.loads(record.public)["event_id"] for record in logs.rows.values()}
    assert {event.id for event in list(world.events)[-3:]} <= newest
    assert 200 == inside.ask("GET", "/_sandbox/invariants").status
    for step in list(reversed(world.log))[:-5]:
        unfold(world, step)
    logs = world.store.webhook_logs
    assert (0, 0) == (len(logs), logs.size)


@pytest.mark.promise("steps-requests-messages-sandboxes")
@pytest.mark.check
def test_all_worlds_keep_so_many_bytes_together(start: Start) -> None:
    """The largest makes room, whichever writes: one that is not used leaves the others a past."""
    inside = start(100)
    budget = budget_of(inside)
    create(inside, 0)
    budget.most = 12 * budget.used
    worlds = [world_of(inside, name) for name in ("default", "one", "two")]
    for number in range(1, 12):
        create(inside, number)
    for number in range(1, 12):
        create(inside, number, "one")
    assert all(len(world.log) >= 4 for world in worlds[:2])
    for world in worlds:
        asyncio.run(inside.app.sandboxes.reset(world.name))
    worlds = [world_of(inside, name) for name in ("default", "one", "two")]
    for number in range(20):
        for world in worlds:
            create(inside, number, world.name)
            assert bytes_of(*worlds) == budget.used <= budget.most
    assert [20, 20, 20] == [world.log.number for world in worlds]
    assert [20, 20, 20] == [len(world.store.projects) for world in worlds]


def test_what_requests_send_is_not_remembered_for_long(start: Start) -> None:
    """One API key that was changed 4,000 times took 270 MB, also once its sandbox was deleted."""
    inside = start(0)
    token = inside.app.server.ready_token(world_of(inside, "default"))
    inside.ask("GET", f"/v2/plans?search={'a' * 50_000}", None, token)
    tracemalloc.start()
    try:
        for number in range(30):
            inside.ask("GET", f"/v2/plans?search={number}{'a' * 50_000}", None, token)
        inside.ask("DELETE", "/_sandbox/requests")
        made, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made < 4_500_000  # of which `urlsplit` of the client remembers three
    assert _key_of.cache_parameters()["maxsize"] == 64
