"""A defect at any point of a change leaves the world as it was or as it should be, and never in between."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import ClassVar

import pytest

from stub_server.contract.violation import ContractViolation
from stub_server.engine import draft as draft_module
from stub_server.engine.draft import Draft
from stub_server.engine.log import Log
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.step import Step
from stub_server.engine.usage import flush_usage
from stub_server.events.log import Event, EventLog
from stub_server.http import idempotency
from stub_server.http.terminal import Bound
from stub_server.kernel.clock import Clock, iso
from stub_server.kernel.ids import Cutter
from stub_server.kernel.timers import Timers
from stub_server.store import ordered
from stub_server.store.memory import Store
from stub_server.store.sorts import Sorts
from stub_server.store.table import Table
from stub_server.store.tallies import Tallies
from stub_server.store.views import Views

from .faults import NEVER, Fault, Place, Planted
from .inside import Answer, Inside, Json
from .scene import MERCHANTS, Request
from .shop import Shop, Turn, shop_in
from .small import Wall, serve, set_wall
from .state import LISTS, answers, same, stale, state, token_of

MOST = 60
"""Calls of one function in one request: a place that is called more often than that is planted no further."""

# Before the step is in the log nothing has happened yet.
DECIDING: Mapping[Place, Callable[[str], Exception]] = {
    **{
        Place(Draft, name): Planted
        for name in (
            "create", "update", "_check_unique", "drop", "at", "open_store", "emit_change", "emit_move", "_emit",
            "raise_event", "open_delivery", "record", "_make_room", "_used", "_forgotten", "_size_of",
        )
    },
    **{Place(Cutter, name): Planted for name in ("_next_block", "_secret", "uuid", "code", "event", "alnum", "secret")},
    **{Place(Clock, name): Planted for name in ("moved", "stopped")},
    Place(Table, "oldest"): Planted,
    Place(Table, "prepare"): ContractViolation,
    Place(Table, "prepare", True): Planted,
    Place(Store, "rendered"): Planted,
    Place(draft_module, "subscribers_to"): Planted,
    Place(draft_module, "new_log"): Planted,
    Place(Event, "payload"): Planted,
    Place(Event, "__new__"): Planted,
    Place(EventLog, "outgoing"): Planted,
    Place(Bound, "check"): ContractViolation,
    Place(idempotency, "saved"): Planted,
    Place(Step, "__new__"): Planted,
    Place(Sandbox, "take"): Planted,
    Place(Log, "append"): Planted,
}  # fmt: skip
# From then on the step is taken, whatever fails.
FOLDING = tuple(
    Place(owner, name, late)
    for owner, names in (
        (Sandbox, ("fold", "_fold_rest", "_store_for")),
        (Store, ("put", "drop", "_moved", "set_usage")),
        (Table, ("enter", "put", "drop", "_move", "_reindex", "_values", "_ranks")),
        (Sorts, ("enter", "move", "values")),
        (Tallies, ("count",)),
        (Views, ("note",)),
        (ordered, ("enter", "add", "add_late", "remove", "larger")),
        (Timers, ("put", "discard")),
        (EventLog, ("append",)),
        (Clock, ("set",)),
    )
    for name in names
    for late in (False, True)
)
# The first writes of a copy, which shares its tables with the world that it comes from.
COPYING = tuple(
    Place(owner, name, late)
    for owner, names in (
        (Sandbox, ("fold", "_fold_rest")),
        (Store, ("put", "drop", "_own", "_name_tables")),
        (Table, ("copy", "enter", "put", "drop", "_take_over")),
        (Sorts, ("copy",)),
        (Tallies, ("copy_to",)),
        (ordered, ("duplicate",)),
    )
    for name in names
    for late in (False, True)
)


def order(shop: Shop) -> Request:
    """Of somebody new: the customer, the order, its timers, events and deliveries, of which the oldest make room."""
    plan = next(shop.world.store.plans.all_rows()).public
    buyer = {"name": "Nova", "email": "succeed_immediately@example.com", "document": "34712695846"}
    body = {"projectId": plan["projectId"], "planId": plan["id"], "paymentMethod": "pix", "totalAmount": 11}
    body |= {"items": [{"description": "Plano", "quantity": 1, "amount": 11}], "customer": buyer}
    return Request("POST", "/v2/orders/pix", body)


def payment(shop: Shop) -> Request:
    """Opens a subscription."""
    ident = next(row.id for row in shop.world.store.orders.rows_of("status", "pending"))
    return Request("POST", f"/_sandbox/orders/{ident}/pay")


def refund(shop: Shop) -> Request:
    """Of a part."""
    ident = next(row.id for row in shop.world.store.orders.rows_of("status", "paid"))
    return Request("POST", f"/_sandbox/orders/{ident}/refund", {"amount": 1})


def key(shop: Shop) -> Request:
    """Takes credentials out of the stream of secrets, and sets a timer."""
    body = {"name": "Nova", "scopes": ["orders:read"], "expires_at": "2026-12-01T00:00:00Z"}
    return Request("POST", "/api-keys", body)


def deleted_key(shop: Shop) -> Request:
    """One that was used, and not all of its use was recorded."""
    used = next(iter(shop.world.store.unrecorded))
    return Request("DELETE", f"/api-keys/{used}")


def deleted_project(shop: Shop) -> Request:
    """With its plan and its product."""
    ident = next(row.id for row in shop.world.store.projects.all_rows() if row.public["name"] == "Vazio")
    return Request("DELETE", f"/v2/projects/{ident}")


def deleted_webhook(shop: Shop) -> Request:
    """With a job that calls off what is open."""
    return Request("DELETE", f"/v2/webhooks/{next(shop.world.store.webhooks.all_rows()).id}")


def rotation(shop: Shop) -> Request:
    """Of a signing key."""
    return Request("POST", f"/v2/webhooks/{next(shop.world.store.webhooks.all_rows()).id}/regenerate-key")


def archive(shop: Shop) -> Request:
    """Sets a job that runs before the next request."""
    ident = next(shop.world.store.projects.all_rows()).id
    return Request("POST", f"/v2/projects/{ident}/archive")


def strangers_customer(shop: Shop) -> Request:
    """Of a merchant whom the world does not know yet: opens his store."""
    return Request("POST", "/v2/customers", {"name": "Rosa", "email": "rosa@example.com", "document": "34712695846"})


def token(shop: Shop) -> Request:
    """Of a merchant whom the world does not know yet: he stays in it, and nothing is written."""
    return Request("POST", "/_sandbox/tokens", {"merchant_id": MERCHANTS[2]})


def setting(shop: Shop) -> Request:
    """Moves the clock, and nothing is due."""
    return Request("PATCH", "/_sandbox/clock", {"to": iso(shop.world.clock.now + 1)})


def freeze(shop: Shop) -> Request:
    """Sets the clock and nothing else."""
    return Request("POST", "/_sandbox/clock/freeze")


REQUESTS: dict[str, Callable[[Shop], Request]] = {
    function.__name__: function
    for function in (
        order, payment, refund, key, deleted_key, deleted_project, deleted_webhook, rotation, archive,
        strangers_customer, token, setting, freeze,
    )
}  # fmt: skip


def advance(shop: Shop) -> Request:
    """Past everything that is due now; what has nothing to do any more is passed over."""
    due = [timer.due for timer in shop.world.timers.pending()]
    return Request("POST", "/_sandbox/clock/advance", {"to": iso(due[-1])})


# An advance makes a step for every job and one of its own: a defect keeps what was done until then.
OF_THE_CLOCK: dict[str, Callable[[Shop], Request]] = {"advance": advance}


@pytest.fixture(scope="module")
def base(inside: Inside, hooks: tuple[str, ...]) -> Shop:
    """A world in which everything is about to happen: lists are warm, replies are many, keys were used."""
    shop = shop_in(inside, hooks)
    for number in range(3):
        shop.play(Turn("create customer", 0, number + 1, number, f"old-{number}"))
    assert 201 == shop.play(Turn("place order", 0, 0, 4, None)).status
    empty = shop.inside.ask(
        "POST", "/v2/projects", {"name": "Vazio"}, token_of(inside, shop.world, shop.world.home)
    ).json()["data"]["project"]["id"]
    for path, body in (
        ("/v2/plans", {"projectId": empty, "name": "Plano", "amount": 5}),
        ("/v2/products", {"projectId": empty, "name": "Aula"}),
    ):
        assert 201 == inside.ask("POST", path, body, token_of(inside, shop.world, shop.world.home)).status
    while len(shop.world.events) == shop.world.events.raised:  # the oldest ones have to go, too
        assert 200 == shop.play(Turn("update customer", 0, 0, 3 * shop.world.events.raised + 2, None)).status
    assert 200 == inside.ask("GET", "/v2/orders", token=shop.keys[0]).status
    flush_usage(shop.world)
    assert 200 == inside.ask("GET", "/v2/orders", token=shop.keys[0]).status
    assert shop.world.store.unrecorded
    return shop


class Trial:
    """One request in one copy of the base world."""

    def __init__(self, base: Shop, request: str) -> None:
        self.shop = base.copy(base.world.fork(base.world.name))
        self.inside, self.world = base.inside, self.shop.world
        set_wall(self.world.clock, Wall(self.world.clock.now))
        serve(self.inside.app, self.world)
        self.merchant = MERCHANTS[1] if request == "strangers_customer" else self.world.home
        self.token = token_of(self.inside, self.world, self.merchant)
        self.request = (REQUESTS | OF_THE_CLOCK)[request](self.shop)

    def warm(self) -> None:
        """Have every list asked for, so that a write has views to think of, in tables that are the world's own."""
        for store in self.world.stores.values():
            for table in list(store.tables.values()):
                store._own(table)
        token = token_of(self.inside, self.world, self.world.home)
        for path, queries in LISTS.items():
            for query in queries:
                assert 200 == self.inside.ask("GET", f"{path}?{query}", token=token).status

    def ask(self) -> Answer:
        """The request, always under the same Idempotency-Key."""
        return self.inside.ask(*self.request, token=self.token, idem="the-key")


class Outcome:
    """What a request leaves when nothing fails: the state before and after, and what it answers."""

    def __init__(self, base: Shop, request: str) -> None:
        trial = Trial(base, request)
        trial.warm()
        self.before = state(trial.world)
        self.answer = trial.ask()
        assert self.answer.status in (200, 201), self.answer
        self.after = state(trial.world)
        self.answers = answers(trial.inside, trial.world)
        self.is_repeatable = any(reply_key[3] == "the-key" for reply_key, _ in self.after["replies"])
        assert {} == stale(trial.world)
        assert self.before != self.after
        trial.ask()
        self.settled = state(trial.world)  # what the request left to a job is done before the next one


class TestPlanted:
    """Every place in every request, call by call."""

    known: ClassVar[dict[str, Outcome]] = {}

    def outcome(self, base: Shop, request_name: str) -> Outcome:
        """Found once for each request."""
        if request_name not in self.known:
            self.known[request_name] = Outcome(base, request_name)
        return self.known[request_name]

    @pytest.mark.parametrize("request_name", REQUESTS)
    @pytest.mark.parametrize("place", DECIDING, ids=str)
    def test_a_defect_before_the_step_is_recorded_changes_nothing(
        self, base: Shop, request_name: str, place: Place
    ) -> None:
        """The answer is 500; the same request again is done, once."""
        expected = self.outcome(base, request_name)
        for turn in range(MOST):
            trial = Trial(base, request_name)
            with Fault(place, turn, DECIDING[place]) as fault:
                answer = trial.ask()
            if not fault.fired:
                same(expected.after, state(trial.world))
                return
            is_a_defect(answer)
            same(expected.before, state(trial.world))
            again(trial, expected)

    @pytest.mark.parametrize("request_name", [*REQUESTS, *OF_THE_CLOCK])
    @pytest.mark.parametrize("place", FOLDING, ids=str)
    def test_a_defect_in_folding_is_repaired(self, base: Shop, request_name: str, place: Place) -> None:
        """The answer is the success that it is, and tables are made anew from their records."""
        expected = self.outcome(base, request_name)
        for turn in range(MOST):
            trial = Trial(base, request_name)
            trial.warm()
            with Fault(place, turn) as fault:
                answer = trial.ask()
            assert not trial.world.is_broken
            assert said(expected.answer) == said(answer)
            same(expected.after, state(trial.world))
            if not fault.fired:
                return
            assert {} == stale(trial.world)
            if turn == 0:
                same(expected.answers, answers(trial.inside, trial.world))
            again(trial, expected)

    @pytest.mark.parametrize("request_name", REQUESTS)
    @pytest.mark.parametrize("place", COPYING, ids=str)
    def test_a_defect_in_folding_leaves_the_origin_of_a_copy_alone(
        self, base: Shop, request_name: str, place: Place
    ) -> None:
        """What the two share until one of them writes is as it was for the other one, and both go their own way."""
        expected, origin = self.outcome(base, request_name), state(base.world)
        for turn in range(MOST):
            trial = Trial(base, request_name)
            with Fault(place, turn) as fault:
                answer = trial.ask()
            assert not trial.world.is_broken
            assert said(expected.answer) == said(answer)
            same(expected.after, state(trial.world))
            same(origin, state(base.world))
            if not fault.fired:
                return
            assert {} == stale(trial.world) | stale(base.world)
            again(trial, expected)
            same(origin, state(base.world))


@pytest.mark.parametrize("places", [DECIDING, FOLDING, COPYING], ids=("deciding", "folding", "copying"))
def test_every_place_is_in_the_way_of_a_request(base: Shop, places: Iterable[Place]) -> None:
    """A place that is never called proves nothing."""
    calls = Counter[Place]()
    for request_name in (*REQUESTS, *OF_THE_CLOCK) if places is FOLDING else REQUESTS:
        trial = Trial(base, request_name)
        if places is FOLDING:
            trial.warm()
        with ExitStack() as stack:
            counted = {place: stack.enter_context(Fault(place, NEVER)) for place in places}
            trial.ask()
        calls.update({place: fault.calls for place, fault in counted.items()})
    assert [] == [str(place) for place in places if not calls[place]]


def said(answer: Answer) -> tuple[int, object]:
    """Status and body of an answer; of a token, which is another one every time, what is said beside it."""
    body: Json = answer.json()
    return answer.status, answer.body if "token" not in body else body | {"token": "", "expires_at": ""}


def again(trial: Trial, expected: Outcome) -> None:
    """Whatever came of a request, asking again under its Idempotency-Key has it done once and answered."""
    if not expected.is_repeatable:
        return
    for _ in range(2):
        answer = trial.ask()
        assert said(expected.answer) == said(answer)
    same(expected.settled, state(trial.world))
    assert "true" == answer.headers["idempotent-replayed"]


def is_a_defect(answer: Answer) -> None:
    """500 in the one shape of every refusal."""
    assert (500, "internal_error") == (answer.status, answer.json().get("code")), answer.body
    body: Json = answer.json()
    assert ["error", "message", "code", "status", "request_id", "details"] == list(body)
    assert body["request_id"] == answer.headers["x-request-id"]
