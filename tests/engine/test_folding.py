"""A world is its origin and its steps: folded elsewhere, or undone and done again, they give the same world."""

import pickle
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stub_server.engine.sandbox import Sandbox
from stub_server.engine.usage import flush_usage

from .actions import ACTIONS
from .inside import Inside
from .scene import MERCHANTS
from .shop import Kept, Shop, Turn, at_rest, shop_in
from .small import Wall, origin, serve, set_wall
from .state import answers, same, stale, state, whole

ROOT = Path(__file__).parents[2]
EXAMPLES = 60
OFTEN = (
    "place order", "place order", "pay order", "pay order", "refund order", "fail order", "read", "advance",
    "advance to next", "create plan", "renew subscription", "test webhook", "cancel order", "retry delivery",
    "expire subscription",
)  # fmt: skip
"""Asked more often than the rest."""
NAMES = sorted(ACTIONS) + sorted(OFTEN) * 2
TURNS = st.builds(
    Turn,
    st.sampled_from(NAMES),
    st.integers(0, 9),
    st.integers(0, 10),
    st.integers(0, 10),
    st.sampled_from((None, None, None, None, "one", "two", '"two"', "three", "four", "five")),
)


def written(kept: Kept) -> Kept:
    """Steps as another day finds them: written down and read again, so that nothing is shared with the world."""
    read: Kept = pickle.loads(pickle.dumps(kept))  # noqa: S301 - our own
    return read


class TestSequences:
    """Random sequences over the whole surface, each looked at in every way."""

    reached: ClassVar[Counter[str]] = Counter()
    apart: ClassVar[list[tuple[Kept, dict[str, Any]]]] = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),  # a shorter example is not worth minutes: what differs is named
    )
    @given(
        turns=st.lists(TURNS, min_size=50, max_size=90),
        more=st.lists(TURNS, min_size=10, max_size=20),
        cut=st.floats(0, 1),
    )
    def test_a_world_is_its_origin_and_its_steps(
        self, inside: Inside, hooks: tuple[str, ...], turns: list[Turn], more: list[Turn], cut: float
    ) -> None:
        shop = shop_in(inside, hooks)
        for turn in turns:
            shop.play(turn)
        kept = at_rest(shop)
        world = shop.world
        self.note(shop, kept)
        assert {} == stale(world)
        laws = inside.ask("GET", "/_sandbox/invariants")
        assert 200 == laws.status, laws.body
        expected = whole(inside, world)
        middle = round(cut * len(kept))

        # The same steps, folded over a new origin without the versions that the handlers had at hand.
        folded, begun, halfway = origin(inside.app), state(origin(inside.app)), {}
        for step in written(kept):
            if step.number == middle + 1:
                halfway = whole(inside, folded)
            folded.fold(step)
        halfway = halfway or expected
        same(expected, whole(inside, folded))
        assert {} == stale(folded)
        self.apart.append((kept, expected))

        # Undone to a step on the way, done again; undone to the origin, done again.
        for newest in reversed(written(kept[middle:])):
            world.unfold(newest)
        same(halfway, whole(inside, world))
        assert {} == stale(world)
        other_way(inside, shop, written(kept[:middle]), more)
        for step in written(kept[middle:]):
            world.fold(step)
        same(expected, whole(inside, world))
        for newest in reversed(kept):
            world.unfold(newest)
        same(begun, state(world))
        assert {} == stale(world)
        for step in kept:
            world.fold(step)
        same(expected, whole(inside, world))
        assert {} == stale(world)

    def note(self, shop: Shop, kept: Kept) -> None:
        """How far the sequences have come."""
        self.reached.update(f"{action} {status}" for action, seen in shop.statuses.items() for status in seen)
        for step in kept:
            for name in ("drops", "forgotten_events", "forgotten_replies", "timers_taken", "used", "saved"):
                self.reached[name] += bool(getattr(step, name))
            self.reached["opens a store"] += step.opens_store
            self.reached["ring"] += any(drop.table == "webhook_logs" for drop in step.drops)
            self.reached[f"job {step.cause.operation}"] += step.cause.kind == "job"
            self.reached["usage of a deleted key"] += any(used.after is None for used in step.used)

    def test_the_sequences_got_everywhere(self) -> None:
        """Every action was granted at least once, and everything that a step can hold was in one."""
        granted = {name for name in ACTIONS if any(self.reached[f"{name} {status}"] for status in (200, 201))}
        assert set(ACTIONS) - {"malformed"} == granted
        held = ("drops", "forgotten_events", "forgotten_replies", "timers_taken", "used", "saved", "opens a store")
        jobs = (
            "order.pay", "order.expire", "order.refund", "subscription.activate", "subscription.renew",
            "subscription.end", "subscription.expire", "api_key.expire", "project.close", "webhook.call_off",
        )  # fmt: skip
        wanted = {*held, "ring", "usage of a deleted key", *(f"job {job}" for job in jobs)}
        assert set() == {name for name in wanted if not self.reached[name]}

    def test_another_process_folds_the_same_worlds(self, tmp_path: Path) -> None:
        """Of the steps alone, written down here and read there."""
        assert len(self.apart) >= EXAMPLES
        file = tmp_path / "steps"
        file.write_bytes(pickle.dumps(self.apart))
        command = [sys.executable, "-m", "tests.engine.refold", str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert (0, f"{len(self.apart)} worlds, none of them different\n") == (done.returncode, done.stdout), done.stderr


def other_way(inside: Inside, shop: Shop, kept: Kept, more: list[Turn]) -> None:
    """From a state that was reached backwards the future is open: it goes as from the same state reached forwards."""
    forwards, backwards = origin(inside.app), shop.world.fork(shop.world.name)
    for step in kept:
        forwards.fold(step)
    found = []
    for world in (forwards, backwards):
        world.clock.set(world.recorded_clock)
        set_wall(world.clock, Wall(world.clock.now))
        serve(inside.app, world)
        twin = shop.copy(world)
        for turn in more:
            if turn.action not in ("test webhook", "retry delivery"):  # how long an attempt takes is no part of them
                twin.play(turn)
        found.append(whole(inside, world))
    same(*found)


def test_usage_is_recorded_for_every_merchant(inside: Inside, hooks: tuple[str, ...]) -> None:
    """Readings by key make no step; recording them makes one for each merchant, and then there is nothing left."""
    shop = shop_in(inside, hooks)
    world: Sandbox = shop.world
    shop.play(Turn("create key", 8, 0, 0, None))
    assert 3 == len(shop.keys)
    flush_usage(world)
    number = world.log.number
    for key in (*shop.keys, *shop.keys):
        assert 200 == inside.ask("GET", "/v2/orders", token=key).status
    assert number == world.log.number
    assert {2} == {count for store in world.stores.values() for count, _ in store.usage.values()}
    assert [world.home, MERCHANTS[1]] == [step.merchant.id for step in flush_usage(world)]
    assert number + 2 == world.log.number
    assert [] == flush_usage(world)


@pytest.mark.parametrize("seed", range(3))
def test_a_world_with_a_past_is_its_origin_and_its_steps(lived: Inside, hooks: tuple[str, ...], seed: int) -> None:
    """The same of a world that was seeded: with timers, usage, deliveries and lists that steps find there."""
    draw = random.Random(seed)
    shop = shop_in(lived, hooks)
    for _ in range(60):
        who, a, b = draw.randrange(10), draw.randrange(11), draw.randrange(11)
        shop.play(Turn(draw.choice(NAMES), who, a, b, None))
    kept, world = at_rest(shop), shop.world
    expected, begun = state(world), state(origin(lived.app))
    assert {} == stale(world)
    folded = origin(lived.app)
    for step in written(kept):
        folded.fold(step)
    same(expected, state(folded))
    same(answers(lived, world), answers(lived, folded))
    for step in reversed(written(kept)):
        world.unfold(step)
    same(begun, state(world))
    assert {} == stale(world)
    for step in kept:
        world.fold(step)
    same(expected, state(world))
