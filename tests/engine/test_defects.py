"""What the engine does about defects that it cannot undo: a job that fails, a void draft, a world
that is broken.
"""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest

from stub_server.core.clock import DAY, HOUR, wall_from
from stub_server.core.ids import NextIds
from stub_server.engine import scheduler
from stub_server.engine.draft import Draft
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.scheduler import JOBS, Job
from stub_server.engine.step import Cause
from stub_server.engine.tables.store import Store
from stub_server.server.work import Work

from ..support.make import fresh_cpf, order_body
from ..support.refusal import refused
from .inside import Answer, Inside, Json
from .shop import Shop, shop_in
from .small import Wall, origin, serve
from .state import same, stale, state, token_of


class Planted(Exception):
    """A defect of ours."""


CUSTOMER: Json = {"name": "Rosa", "email": "rosa@example.com", "document": "34712695846"}


@pytest.fixture
def shop(inside: Inside) -> Shop:
    """A world of the test's own, its clock standing."""
    return shop_in(inside)


def create(shop: Shop, idem: str | None = None) -> Answer:
    """One writing request."""
    return shop.ask("POST", "/v2/customers", CUSTOMER, idem)


def read(shop: Shop) -> Answer:
    """One reading request."""
    return shop.ask("GET", "/v2/orders")


# -- jobs


def failing(name: str, turn: int = 0) -> MappingProxyType[str, Job]:
    """The jobs, one of which fails at its `turn`-th run with something to do."""
    left = [turn]

    def fail(draft: Draft, subject: str) -> None:
        order = draft.store.orders.peek(subject)
        if order is not None and order["status"] == "pending":
            if left[0] == 0:
                raise Planted(name)
            left[0] -= 1
        JOBS[name](draft, subject)

    return MappingProxyType({**JOBS, name: fail})


@pytest.fixture
def waiting(shop: Shop) -> Shop:
    """Two orders that expire tomorrow at one instant, after a timer that has nothing to
    do any more.
    """
    project = shop.ask("POST", "/v2/projects", {"name": "Clube", "status": "active"}).json()[
        "data"
    ]["project"]["id"]
    plan = {"projectId": project, "name": "Avulso", "amount": 49.9, "billing_type": "one_time"}
    ident = shop.ask("POST", "/v2/plans", plan).json()["plan"]["id"]
    for _ in range(3):
        buyer = {"name": "Rosa", "email": "rosa@example.com", "document": fresh_cpf()}
        assert (
            201
            == shop.ask("POST", "/v2/orders/pix", order_body(project, ident, customer=buyer)).status
        )
    pending = {row.id for row in shop.world.store.orders.rows_of("status", "pending")}
    first = next(timer.subject for timer in shop.world.timers.pending() if timer.subject in pending)
    assert 200 == shop.inside.ask("POST", f"/_sandbox/orders/{first}/pay").status
    return shop


def expired(world: Sandbox) -> int:
    """How many orders have expired."""
    return world.store.orders.count("status", "expired")


def test_time_waits_before_a_job_that_fails_and_requests_are_served(
    waiting: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next request tries it again; when it works, it is done at its own time."""
    world = waiting.world
    wall = Wall(world.clock.now)
    with wall_from(wall):
        assert 200 == waiting.inside.ask("PATCH", "/_sandbox/clock", {"frozen": False}).status
        pending = {row.id for row in world.store.orders.rows_of("status", "pending")}
        (due,) = {timer.due for timer in world.timers.pending() if timer.subject in pending}
        wall.now += 2 * DAY
        before = state(world)
        stood = world.clock.now
        was = expired(world)
        with monkeypatch.context() as patched:
            patched.setattr(scheduler, "JOBS", failing("order.expire"))
            for _ in range(2):
                assert 200 == read(waiting).status
                assert stood == world.clock.now < due
                same(before, state(world))
            assert 201 == create(waiting).status
            assert stood == world.clock.now
            assert was == expired(world)
        assert 200 == read(waiting).status
        assert was + 2 == expired(world)
        assert world.clock.now >= stood + 2 * DAY
        last = [event for event in world.events if event.type == "order.expired"]
        assert [due, due] == [event.at for event in last[-2:]]
        assert {} == stale(world)


def test_an_advance_over_a_job_that_fails_is_500_and_goes_on_from_there(
    waiting: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done before it stays done, what is passed over is kept; asked again, it comes to the
    same world.
    """
    world = waiting.world
    other = waiting.world.fork(waiting.world.name)
    was = expired(world)
    with monkeypatch.context() as patched:
        patched.setattr(scheduler, "JOBS", failing("order.expire", turn=1))
        advanced = waiting.inside.ask(
            "POST", "/_sandbox/clock/advance", {"seconds": 40 * HOUR / 1000}
        )
        refused(advanced, 500, "internal_error")
        assert was + 1 == expired(world)
        assert {} == world.timers.skipped
        middle = state(world)
        advanced = waiting.inside.ask(
            "POST", "/_sandbox/clock/advance", {"seconds": 30 * HOUR / 1000}
        )
        refused(advanced, 500, "internal_error")
        same(middle, state(world))
    to = {"to": "2026-11-22T00:00:00Z"}
    # The clock stands at the very instant of the job: it is tried before the request, and not by
    # it.
    assert [] == waiting.inside.ask("POST", "/_sandbox/clock/advance", to).json()["fired"]
    assert was + 2 == expired(world)
    serve(waiting.inside.app, other)
    fired = waiting.inside.ask("POST", "/_sandbox/clock/advance", to).json()["fired"]
    assert ["order.expire"] * 2 == [done["job"] for done in fired]
    same(state(other), state(world))
    assert {} == stale(world)


# -- drafts


def test_a_request_whose_draft_is_void_is_500_and_nothing_of_it_is_recorded(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = shop.world
    commit = Work.commit
    twin = world.fork(world.name)

    def meddle(somewhere: Sandbox) -> None:
        draft = Draft(somewhere, somewhere.store, Cause("control", "", "meddling"))
        draft.at(somewhere.clock.now + DAY, "order.expire", NextIds(somewhere.ids).uuid())
        draft.record()

    def meddled(*given: Any) -> None:
        meddle(world)
        commit(*given)

    with monkeypatch.context() as patched:
        patched.setattr(Work, "commit", meddled)
        refused(create(shop, "once"), 500, "internal_error")
    meddle(twin)
    same(state(twin), state(world))
    assert 201 == create(shop, "once").status


# -- broken worlds


@pytest.fixture
def broken(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A world in which folding a step has failed."""

    def fail(*given: Any) -> None:
        raise Planted("folding")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "replace", fail)
        refused(create(shop, "lost"), 500, "internal_error")
    assert shop.world.status.is_broken
    yield shop
    serve(shop.inside.app, origin(shop.inside.app))


def test_a_broken_world_answers_503_until_it_is_reset(broken: Shop) -> None:
    inside = broken.inside
    world = broken.world
    number = world.log.number
    for answer in (
        read(broken),
        create(broken),
        create(broken, "lost"),
        inside.ask("GET", "/_sandbox/clock"),
        inside.ask("POST", "/_sandbox/clock/advance", {"seconds": DAY}),
        inside.ask("GET", "/_sandbox/credentials"),
        inside.ask("GET", "/nowhere"),
    ):
        assert "POST /_sandbox/reset" in refused(answer, 503, "sandbox_unavailable")["message"]
    for path in ("health", "ready", "metrics"):  # of the server, and not of this sandbox
        assert 200 == inside.ask("GET", f"/_sandbox/{path}").status
    assert number == world.log.number
    elsewhere = inside.ask("GET", "/s/elsewhere/_sandbox/credentials")
    inside.app.sandboxes.forget("elsewhere")
    assert 200 == elsewhere.status
    assert 200 == inside.ask("POST", "/_sandbox/reset").status
    healed = inside.app.sandboxes.default
    assert healed is not world
    same(state(origin(inside.app)), state(healed))
    token = token_of(inside, healed)
    assert 201 == inside.ask("POST", "/v2/customers", CUSTOMER, token, "lost").status
