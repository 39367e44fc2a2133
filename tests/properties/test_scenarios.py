"""Every scenario is a world that obeys the laws, and the same world on every machine."""

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stub_server.core.clock import DAY, iso, parse_iso
from stub_server.core.record import Row, without
from stub_server.core.slices import at_once
from stub_server.engine.laws import checking
from stub_server.engine.sandbox import Sandbox
from stub_server.settings import Settings
from tests.journeys.hooks import advance as advance_by_http
from tests.journeys.hooks import clients
from tests.support.live import NOW, running
from tests.support.worlds import FIXTURES, digest, drafted, world

pytestmark = pytest.mark.check

ROOT = Path(__file__).parents[2]


SCENARIOS = ("default", "empty", "past_due", "extremes", "busy")


@pytest.fixture(scope="module", params=SCENARIOS)
def scenario(request: pytest.FixtureRequest, small_busy: str) -> str:
    return small_busy if request.param == "busy" else str(request.param)


Seen = Callable[[str, str], Sandbox]


@pytest.fixture(scope="module")
def seen() -> Seen:
    """`seen(scenario, now)`: a world to look at, which nobody changes, so that each
    is made once.
    """
    return cache(lambda scenario, now: world(scenario, now=now))


@pytest.fixture(scope="module")
def made(scenario: str, seen: Seen) -> Sandbox:
    """The world of each, to look at."""
    return seen(scenario, NOW)


@pytest.fixture(scope="module")
def default(seen: Seen) -> Sandbox:
    return seen("default", NOW)


def test_all_scenarios_are_tried() -> None:
    assert {file.stem for file in (FIXTURES / "scenarios").glob("*.yaml")} == set(SCENARIOS)


@pytest.mark.turn
def test_without_the_provider_no_scenario_can_be_made() -> None:
    """Everybody and everything that is invented comes out of it."""
    code = (
        "from faker.providers import BaseProvider\n"
        "from stub_server.data import provider\n"
        "class Empty(BaseProvider): pass\n"
        "provider.MembershipProvider = Empty\n"
        "from tests.support.worlds import world\n"
        "for name in ('default', 'busy', 'past_due', 'extremes'):\n"
        "    try:\n"
        "        world(name)\n"
        "    except AttributeError as error:\n"
        "        print(name, error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert [line.split()[0] for line in found.stdout.splitlines()] == [
        "default",
        "busy",
        "past_due",
        "extremes",
    ]


def test_every_law_holds(made: Sandbox) -> None:
    broken = {c["id"]: c["violations"] for c in at_once(checking(made)) if not c["ok"]}
    assert broken == {}


@pytest.mark.parametrize(
    "now",
    [
        "2024-02-29T23:59:59.999Z",
        pytest.param("2027-03-31T12:00:00.000Z", marks=pytest.mark.night),
        pytest.param("2027-01-01T00:00:00.000Z", marks=pytest.mark.night),
    ],
)
@pytest.mark.turn
def test_every_law_holds_at_other_times(scenario: str, now: str) -> None:
    broken = {
        c["id"]: c["violations"]
        for c in at_once(checking(world(scenario, seed=7, now=now)))
        if not c["ok"]
    }
    assert broken == {}


@pytest.fixture(scope="module")
def elsewhere(small_busy: str, request: pytest.FixtureRequest) -> list[dict[str, str]]:
    """What a fresh process with its own hash seed and time zone makes of every scenario, and at
    night another.
    """
    places = (("4294967295", "Asia/Tokyo"), ("1", "America/Sao_Paulo"))
    names = [small_busy if name == "busy" else name for name in SCENARIOS]
    code = (
        "from tests.support.worlds import digest, world; print({n: digest(world(n)) for n in"
        f" {names!r}}})"
    )
    return [
        ast.literal_eval(
            subprocess.run(
                [sys.executable, "-c", code],
                cwd=ROOT, check=True, capture_output=True, text=True,
                env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "TZ": zone},
            ).stdout
        )
        for seed, zone in places[: 2 if request.config.getoption("--night") else 1]
    ]  # fmt: skip


def test_other_processes_make_the_same_world(
    made: Sandbox, scenario: str, elsewhere: list[dict[str, str]]
) -> None:
    assert {digest(made)} == {each[scenario] for each in elsewhere}


def test_another_seed_makes_another_world_with_the_same_named_ids(default: Sandbox) -> None:
    other = world("default", seed=43)
    assert digest(other) != digest(default)
    for table in ("projects", "plans", "products", "api_keys", "webhooks"):
        assert set(default.store.tables[table].keys) == set(other.store.tables[table].keys)
    assert default.origin.personas == other.origin.personas
    assert default.origin.home == other.origin.home


# -- what default holds


def test_default_has_the_sizes_that_it_promises(default: Sandbox) -> None:
    counts = default.store.counts()
    assert (counts["customers"], counts["projects"]) == (220, 5)
    assert 590 < counts["orders"] < 615
    assert (counts["api_keys"], counts["webhooks"]) == (5, 4)


@pytest.fixture(
    scope="module", params=[NOW, "2027-03-01T00:30:00.000Z", "2028-02-29T12:00:00.000Z"]
)
def some_day(request: pytest.FixtureRequest, seen: Seen) -> Sandbox:
    return seen("default", request.param)


@pytest.mark.parametrize(
    ("persona", "status"),
    [
        ("past_due_br", "past_due"), ("churned", "expired"), ("left_early", "canceled"), ("leaving_soon", "active"),
        ("on_trial", "trialing"), ("loyal_member", "active"), ("refunded_buyer", "canceled"), ("company_br", "active"),
    ],
)  # fmt: skip
@pytest.mark.matrix
def test_personas_are_what_their_names_say(persona: str, status: str, some_day: Sandbox) -> None:
    held = list(
        some_day.store.subscriptions.rows_of("customerId", some_day.origin.personas[persona])
    )
    assert [row.public["status"] for row in held] == [status]
    assert held[0].public["cancel_at_period_end"] == (persona in ("leaving_soon", "left_early"))


@pytest.mark.turn
def test_a_seeded_world_keeps_every_invariant_for_a_year(scenario: str) -> None:
    """What has been lived goes on like what is lived from here: nothing in the past was only said
    to have been.
    """
    with (
        running(Settings(scenario=scenario, now=parse_iso(NOW))) as live,
        clients(live) as (_, control),
    ):
        year = iso(parse_iso(NOW) + 365 * DAY)
        jobs: Counter[str] = Counter()
        # one call does a bounded number of jobs
        while (told := advance_by_http(control, to=year))["now"] < year:
            jobs.update(fired["job"] for fired in told["fired"])
        jobs.update(fired["job"] for fired in told["fired"])
        found = control.get("/invariants").json()
    assert (True, []) == (found["ok"], [check for check in found["checks"] if not check["ok"]])
    assert (scenario == "empty") == (not jobs)


def change_order(
    sandbox: Sandbox, row: Row, public: dict[str, Any], hidden: dict[str, Any] | None = None
) -> None:
    """Write an order as no rule would."""
    draft = drafted(sandbox)
    draft.put(row.changed(public, hidden), is_noted=False)
    draft.record()


def test_laws_find_what_is_broken(default: Sandbox) -> None:
    """Each of these writes one wrong record, and the law about it says so."""
    paid = (row for row in default.store.orders.all_rows() if row.public["status"] == "paid")
    order = next(row for row in paid if row.public["paymentMethod"] == "pix")
    payment = without(order.public["last_transaction"], "end_to_end_id")
    wrong: list[tuple[int, dict[str, Any]]] = [
        (3, {"last_transaction": payment}),
        (3, {"status": "pending"}),
        (6, {"updatedAt": "2019-01-01T00:00:00.000Z"}),
    ]
    for law, change in wrong:
        sandbox = default.fork("broken")
        row = sandbox.store.orders.open(order.id)
        assert row is not None
        change_order(sandbox, row, row.public | change)
        broken = {c["id"] for c in at_once(checking(sandbox)) if not c["ok"]}
        assert law in broken, law
    sandbox = default.fork("broken")
    row = sandbox.store.orders.open(order.id)
    assert row is not None
    change_order(sandbox, row, row.public, row.hidden | {"paid_cents": 1})
    assert 3 in {c["id"] for c in at_once(checking(sandbox)) if not c["ok"]}
