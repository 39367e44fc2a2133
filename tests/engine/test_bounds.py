"""The log of a world is bounded in steps and in bytes, and all logs together are; what is thrown away gives it back."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from stub_server.app import create_app
from stub_server.domain.deliveries import AttemptOutcome
from stub_server.engine import bounded as logs
from stub_server.engine.bounded import Budget
from stub_server.engine.journal import Journal
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.step import OVERHEAD
from stub_server.events.sender import Sender
from stub_server.sandboxes import making
from stub_server.store import tables

from ..support.live import FROZEN
from ..support.worlds import first_used
from .inside import Answer, Inside
from .state import unfold

Start = Callable[[int], Inside]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """`start(history)`: a server over an empty world that keeps so many steps."""
    made: list[Inside] = []
    # Requests would take bytes of the same budget.
    monkeypatch.setattr(making, "Journal", lambda most, budget: Journal(most))

    def begin(history: int) -> Inside:
        made.append(Inside(create_app(replace(FROZEN, scenario="empty", history=history))))
        return made[-1]

    yield begin
    for inside in made:
        inside.close()


def create(inside: Inside, number: int, sandbox: str = "default", size: int = 0, idem: str | None = None) -> Answer:
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


@pytest.mark.check
@pytest.mark.parametrize("history", [0, 1, 5, 100])
def test_so_many_steps_are_kept(start: Start, history: int) -> None:
    """The newest ones; what the others did stays done, and is answered again under its key."""
    inside = start(history)
    world = inside.app.sandboxes.default
    answers = [create(inside, number, idem=f"key-{number}") for number in range(8)]
    kept = min(history, 8)
    assert (8, kept, 8 - kept + 1) == (world.log.number, len(world.log), world.log.oldest)
    assert list(range(8 - kept + 1, 9)) == [step.number for step in world.log]
    assert list(range(8, 8 - kept, -1)) == [step.number for step in reversed(world.log)]
    assert 8 == len(world.store.projects)
    assert bytes_of(world) == budget_of(inside).used
    assert answers[0].body == create(inside, 0, idem="key-0").body
    assert 8 == len(world.store.projects)


@pytest.mark.check
def test_a_world_keeps_so_many_bytes(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps that is: of large ones few, of one that is larger than all there may be, none."""
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
    assert (32, 0, 0) == (world.log.number, len(world.log), budget_of(inside).used)
    create(inside, 32)
    assert 33 == len(world.store.projects)


@pytest.mark.promise("deliveries")
def test_deliveries_are_kept_up_to_so_many_bytes(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its payload. The oldest go, and undoing has them again."""
    monkeypatch.setattr(tables, "LOG_BYTES", 200_000)
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
        sizes.append(sum(record.size for record in rows))
        assert sizes[-1] == logs.size <= 200_000
    assert 100_000 < sizes[-1]
    newest = {json.loads(record.public)["event_id"] for record in logs.rows.values()}
    assert {event.id for event in list(world.events)[-3:]} <= newest
    assert 200 == inside.ask("GET", "/_sandbox/invariants").status
    for step in list(reversed(world.log))[:-5]:
        unfold(world, step)
    logs = world.store.webhook_logs
    assert (0, 0) == (len(logs), logs.size)


def test_a_step_counts_what_it_keeps_alive(start: Start) -> None:
    """The versions it wrote, those it replaced, the records it took out, and the reply it saved."""
    inside = start(100)
    world = inside.app.sandboxes.default
    token = inside.app.server.ready_token(world)
    create(inside, 0, size=400)
    (made,) = world.log
    record = made.changes[0].after
    assert record is not None
    assert made.size >= OVERHEAD + len(record.public)
    assert 200 == inside.ask("PUT", f"/v2/projects/{record.id}", {"description": "y" * 400}, token).status
    assert 200 == inside.ask("DELETE", f"/v2/projects/{record.id}", token=token).status
    _, updated, deleted = world.log
    assert updated.size >= OVERHEAD + 2 * len(record.public)
    assert deleted.size >= OVERHEAD + len(record.public)
    create(inside, 1)
    reply = create(inside, 2, idem="key")
    *_, plain, replied = world.log
    assert replied.size == plain.size + len(reply.body)


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


@pytest.mark.check
def test_reset_and_forget_give_the_bytes_back(start: Start) -> None:
    inside = start(100)
    budget = budget_of(inside)
    for name in ("default", "one", "two"):
        for number in range(3):
            create(inside, number, name)
    one = world_of(inside, "one")
    assert budget.used == bytes_of(one) * 3
    inside.app.sandboxes.forget("two")
    assert budget.used == bytes_of(one) * 2
    assert 200 == inside.ask("POST", "/_sandbox/reset").status
    assert budget.used == bytes_of(one)
    assert 200 == inside.ask("POST", "/s/one/_sandbox/reset").status
    assert 0 == budget.used


@pytest.mark.check
def test_a_request_that_outlives_its_world_keeps_nothing(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test delivery waits for its receiver while the world is reset: its outcome is nobody's."""
    inside = start(100)
    old = inside.app.sandboxes.default
    token = inside.app.server.ready_token(old)
    body = {"url": "http://127.0.0.1:9/hook", "events": ["*"]}
    webhook = inside.ask("POST", "/v2/webhooks", body, token).json()["webhook"]["id"]
    attempt = Sender.attempt

    async def slow(sender: Sender, *args: object) -> AttemptOutcome:
        outcome = await attempt(sender, *args)  # type: ignore[arg-type]  # passed on as they came
        await inside.app.sandboxes.reset("default")
        return outcome

    monkeypatch.setattr(Sender, "attempt", slow)
    assert 503 == inside.ask("POST", f"/v2/webhooks/{webhook}/test", token=token).status
    assert old is not inside.app.sandboxes.default
    assert (2, 0, 0) == (old.log.number, len(old.log), budget_of(inside).used)
    assert inside.app.sandboxes.default.log.number == 0


@pytest.mark.check
def test_a_fork_goes_on_from_the_same_number(start: Start) -> None:
    """With an empty log of its own, which shares the budget."""
    inside = start(2)
    world = inside.app.sandboxes.default
    for number in range(3):
        create(inside, number)
    twin = asyncio.run(inside.app.sandboxes.fork("default", "twin", None, None)).sandbox
    assert (3, 0, 4) == (twin.log.number, len(twin.log), twin.log.oldest)
    for number in range(3, 6):
        create(inside, number, "twin")
    assert [5, 6] == [step.number for step in twin.log]
    assert [2, 3] == [step.number for step in world.log]
    assert bytes_of(world, twin) == budget_of(inside).used
