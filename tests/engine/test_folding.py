"""A world is its origin and its steps: folded elsewhere, or undone and done again, they give the same world."""

import pickle
import random
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stub_server.engine.sandbox import Sandbox
from stub_server.engine.scheduler import JOBS

from .actions import ACTIONS
from .inside import Inside
from .shop import Kept, Shop, Turn, at_rest, shop_in
from .small import Wall, origin, serve, set_wall
from .state import Facts, answers, same, stale, state, unfold, whole
from .turns import CODA, NAMES, TURNS

HELD = ("forgotten_events", "forgotten_replies", "timers_fired", "used", "saved", "opens_store", "restored")
"""Members of a step that most steps have nothing in."""
ROOT = Path(__file__).parents[2]
EXAMPLES = 26


def written(kept: Kept) -> Kept:
    """Steps as another day finds them: written down and read again, so that nothing is shared with the world."""
    read: Kept = pickle.loads(pickle.dumps(kept))  # noqa: S301 - our own
    return read


@dataclass(slots=True)
class Seen:
    """How far the sequences have come, and the worlds that they came to: steps and everything that is told of it."""

    reached: Counter[str] = field(default_factory=Counter)
    worlds: list[tuple[Kept, Facts]] = field(default_factory=list)

    def note(self, shop: Shop, kept: Kept) -> None:
        """Take a sequence into account."""
        self.reached.update(f"{action} {status}" for action, seen in shop.statuses.items() for status in seen)
        for step in kept:
            self.reached.update(name for name in HELD if getattr(step, name))
            self.reached["deliveries that made room"] += any(
                table == "webhook_logs" and after is None for table, _, after in step.changes
            )
            self.reached["deletions"] += any(change.deletes() for change in step.changes)
            self.reached["usage of a deleted key"] += any(used.after is None for used in step.used)
            if step.cause.kind == "job":
                self.reached[step.cause.operation] += 1

    def missed(self) -> set[str]:
        """Actions that were never granted, members of a step that were never filled, jobs that were never done."""
        granted = {name for name in ACTIONS if self.reached[f"{name} 200"] or self.reached[f"{name} 201"]}
        wanted = {*HELD, *JOBS, "deletions", "deliveries that made room", "usage of a deleted key"}
        wanted |= {"replayed 200", "replayed 201"}
        return (set(ACTIONS) - {"malformed"} - granted) | {name for name in wanted if not self.reached[name]}


@pytest.mark.check
@pytest.mark.turn
def test_a_world_is_its_origin_and_its_steps(inside: Inside, hooks: tuple[str, ...], tmp_path: Path) -> None:
    """Random sequences over the whole surface: folded here, folded in another process, undone and done again."""
    seen = Seen()

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
    def sequence(turns: list[Turn], more: list[Turn], cut: float) -> None:
        shop = shop_in(inside, hooks)
        for turn in turns + CODA:
            shop.play(turn)
        kept = at_rest(shop)
        seen.note(shop, kept)
        seen.worlds.append((kept, look_at(shop, kept, more, round(cut * len(kept)))))

    sequence()
    assert set() == seen.missed()
    assert EXAMPLES == len(seen.worlds)
    file = tmp_path / "steps"
    file.write_bytes(pickle.dumps(seen.worlds))
    command = [sys.executable, "-m", "tests.engine.refold", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (0, f"{EXAMPLES} worlds, none of them different\n") == (done.returncode, done.stdout), done.stderr


def look_at(shop: Shop, kept: Kept, more: list[Turn], middle: int) -> Facts:
    """Hold a world to its steps in every way; answers all that is told of it."""
    inside, world = shop.inside, shop.world
    assert {} == stale(world)
    laws = inside.ask("GET", "/_sandbox/invariants")
    assert 200 == laws.status, [(law["name"], law["violations"]) for law in laws.json()["checks"] if not law["ok"]]
    expected = whole(inside, world)

    # The same steps, folded over a new origin without the versions that the handlers had at hand.
    folded, begun = origin(inside.app), state(origin(inside.app))
    steps = written(kept)
    while middle < len(steps) and steps[middle].cause.kind == "job":  # to read a world has it do what is due
        middle += 1
    for step in steps[:middle]:
        folded.fold(step)
    halfway = whole(inside, folded)
    for step in steps[middle:]:
        folded.fold(step)
    same(expected, whole(inside, folded))
    assert {} == stale(folded)

    # Undone to a step on the way and done again; undone to the origin and done again.
    for step in reversed(steps[middle:]):
        unfold(world, step)
    same(halfway, whole(inside, world))
    assert {} == stale(world)
    for step in steps[middle:]:
        world.fold(step)
    same(expected, whole(inside, world))
    for step in reversed(kept):
        unfold(world, step)
    same(begun, state(world))
    assert {} == stale(world)
    for step in kept:
        world.fold(step)
    same(expected, whole(inside, world))
    assert {} == stale(world)

    # Undone to the step on the way, and the world goes another way from there: as one that was never any further.
    for step in reversed(kept[middle:]):
        unfold(world, step)
    forwards = origin(inside.app)
    for step in steps[:middle]:
        forwards.fold(step)
    same(other_way(shop, forwards, more), other_way(shop, world, more))
    assert {} == stale(world)
    return expected


def other_way(shop: Shop, world: Sandbox, more: list[Turn]) -> Facts:
    """A world after some more requests and two months."""
    world.clock.set(world.recorded_clock)
    set_wall(world.clock, Wall(world.clock.now, 0))  # how often somebody looks depends on the machine's load
    serve(shop.inside.app, world)
    twin = shop.copy(world)
    if twin.granted is not None and twin.granted[0].target.endswith(("/retry", "/test")):
        twin.granted = None
    for turn in more:
        # How long an attempt takes is no part of them, and only one of them has the log and the snapshots.
        if turn.action not in ("test webhook", "retry delivery", "rewind", "snapshot", "restore"):
            twin.play(turn)
    for _ in range(2):
        twin.play(Turn("advance", 0, 0, 8, None))
    return whole(shop.inside, world)


@pytest.mark.check
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.night) for seed in (1, 2))])
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
        unfold(world, step)
    same(begun, state(world))
    assert {} == stale(world)
    for step in kept:
        world.fold(step)
    same(expected, state(world))
