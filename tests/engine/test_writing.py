"""A world and its steps as lines: whoever reads them has the same world, the same steps and the same future."""

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stub_server.delivery.inbox import Inbox
from stub_server.engine.bounded import Budget
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.step import Step
from stub_server.files.exports import write_sandbox
from stub_server.files.lines import Reader, state_lines, step_line
from stub_server.files.state import build, capture
from stub_server.kernel.slices import BackgroundWorker
from stub_server.persistence.persistence import Persistence
from stub_server.persistence.sqlite import SqliteStore
from stub_server.sandboxes.entry import Entry, Snapshots

from .inside import Inside
from .shop import Shop, Turn, at_rest, shop_in
from .small import NAME, origin, serve
from .state import Facts, same, stale, state, unfold, whole
from .turns import CODA, TURNS

pytestmark = pytest.mark.check

EXAMPLES = 12


def read(inside: Inside, lines: Iterable[bytes]) -> tuple[Sandbox, list[Step]]:
    """The world of these lines, and their steps."""
    factory = inside.app.sandboxes.factory
    reader = Reader(lambda _, scenario, seed: factory.empty(NAME, "", scenario, seed, None))
    for line in lines:
        ((kind, body),) = orjson.loads(line).items()
        reader.read(kind, body)
    world = build(reader.state, factory.secret)
    return world, list(world.log)


def test_a_world_that_is_written_and_read_is_the_same(inside: Inside, hooks: tuple[str, ...], tmp_path: Path) -> None:
    """Random sequences over the whole surface: as a state, as an origin with steps, as a file, in a directory."""
    examples = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(turns=st.lists(TURNS, min_size=40, max_size=70), cut=st.floats(0, 1))
    def sequence(turns: list[Turn], cut: float) -> None:
        nonlocal examples
        examples += 1
        store = SqliteStore(tmp_path / str(examples), 42, always=False)
        persistence = Persistence(store, inside.app.sandboxes.factory)
        shop = shop_in(inside, hooks)
        persistence.begin(entry := _entry(shop.world))
        assert entry.sandbox.log.writer is not None
        for turn in turns:
            shop.play(turn)
        number = shop.world.log.number
        assert 200 == inside.ask("POST", "/_sandbox/rewind", {"to_step": round(number * cut)}).status
        for turn in CODA:
            shop.play(turn)
        inside.ask("GET", "/v2/orders", token=shop.keys[-1] if shop.keys else None)  # usage that no step has recorded
        look_at(inside, shop)
        expected = state(shop.world)
        inside.run(persistence.stop())
        assert entry.sandbox.log.writer is None
        reopened(inside, tmp_path / str(examples), expected)

    sequence()
    assert EXAMPLES == examples


def look_at(inside: Inside, shop: Shop) -> None:
    """Read a world from its state, from its origin with its steps, and from a file with its history."""
    world, kept, expected = shop.world, list(shop.world.log), state(shop.world)
    read_back, _ = read(inside, state_lines(capture(world)))
    same(expected, state(read_back))
    assert {} == stale(read_back)
    file = BytesIO()
    write_sandbox(file, capture(world), kept, (), secrets=True)
    admitted, *_ = inside.app.sandboxes.factory.read(NAME, "", file.getvalue(), abroad=False)
    running_on = {"clock": admitted.clock.state} if not admitted.clock.frozen else {}
    same(expected | running_on, state(admitted))
    assert admitted.clock.now == world.recorded_clock.now
    assert kept == list(admitted.log)
    kept = at_rest(shop)
    folded, steps = read(inside, [*state_lines(capture(origin(inside.app))), *map(step_line, kept)])
    assert kept == steps
    same(whole(inside, world), whole(inside, folded))
    assert {} == stale(folded)
    for step in reversed(steps):
        unfold(folded, step)
    same(state(origin(inside.app)), state(folded))
    serve(inside.app, world)


def reopened(inside: Inside, path: Path, expected: Facts) -> None:
    """Read a world from its directory, written step by step: with all its steps, and with the newest alone."""
    sandboxes = inside.app.sandboxes
    for history in (10_000, 7, 0):
        short = copy(sandboxes.factory)
        short.settings, short.worker = replace(sandboxes.settings, history=history), BackgroundWorker()
        persistence = Persistence(SqliteStore(path, 42, always=False), short)
        try:
            (entry,) = persistence.read(10)
            same(expected, state(entry.sandbox))
            assert {} == stale(entry.sandbox)
        finally:
            persistence.close()


def _belongings() -> tuple[Inbox, Snapshots]:
    return Inbox(Budget()), Snapshots(Budget())


def _entry(world: Sandbox) -> Entry:
    return Entry(world, None, False, 0, 0, None, *_belongings(), "0-1", world.events.raised)
