"""A defect at any point of a change leaves the world as it was, or answering 503: nobody sees anything in between."""

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from typing import ClassVar

import pytest

from stub_server.server.layers.endpoint import Endpoint

from .faults import NEVER, Fault, Place
from .inside import Inside
from .places import COPYING, DECIDING, FOLDING
from .shop import Shop, Turn, flush_usage, shop_in
from .state import same, stale, state, token_of
from .trial import NEWCOMERS, OF_THE_CLOCK, REQUESTS, SETTING, Outcome, Trial, again, is_a_defect

MOST = 60
"""Calls of one function in one request: a place that is called more often than that is planted no further."""
SHARING = [name for name in (*REQUESTS, *OF_THE_CLOCK) if name not in NEWCOMERS]


@pytest.fixture(scope="module")
def base(inside: Inside, hooks: tuple[str, ...]) -> Shop:
    """A world in which everything is about to happen: lists are warm, replies are many, keys were used."""
    shop = shop_in(inside, hooks)
    for number in range(3):
        shop.play(Turn("create customer", 0, number + 1, number, f"old-{number}"))
    assert 201 == shop.play(Turn("place order", 0, 0, 4, None)).status
    empty = shop.inside.ask(
        "POST", "/v2/projects", {"name": "Vazio"}, token_of(inside, shop.world, shop.world.origin.home)
    ).json()["data"]["project"]["id"]
    for path, body in (
        ("/v2/plans", {"projectId": empty, "name": "Plano", "amount": 5}),
        ("/v2/products", {"projectId": empty, "name": "Aula"}),
    ):
        assert 201 == inside.ask("POST", path, body, token_of(inside, shop.world, shop.world.origin.home)).status
    while len(shop.world.events) == shop.world.events.raised:  # the oldest ones have to go, too
        assert 200 == shop.play(Turn("update customer", 0, 0, 3 * shop.world.events.raised + 2, None)).status
    assert 200 == inside.ask("GET", "/v2/orders", token=shop.keys[0]).status
    flush_usage(shop.world)
    assert 200 == inside.ask("GET", "/v2/orders", token=shop.keys[0]).status
    assert shop.world.store.unrecorded
    return shop


class TestPlanted:
    """Every place in every request, call by call."""

    known: ClassVar[dict[str, Outcome]] = {}

    def outcome(self, base: Shop, request_name: str) -> Outcome:
        """Found once for each request."""
        if request_name not in self.known:
            self.known[request_name] = Outcome(base, request_name)
        return self.known[request_name]

    @pytest.mark.parametrize("request_name", [*REQUESTS, *SETTING])
    @pytest.mark.parametrize("place", DECIDING, ids=str)
    @pytest.mark.matrix
    def test_a_defect_before_the_step_is_recorded_changes_nothing(
        self, base: Shop, request_name: str, place: Place
    ) -> None:
        """The answer is 500; the same request again is done, once."""
        expected = self.outcome(base, request_name)
        is_recorded = place.owner is Endpoint and request_name in SETTING  # by its handler, before it answers
        for turn in range(MOST):
            trial = Trial(base, request_name)
            with Fault(place, turn, DECIDING[place]) as fault:
                answer = trial.ask()
            if not fault.fired:
                same(expected.after, state(trial.world))
                return
            is_a_defect(answer)
            same(expected.after if is_recorded else expected.before, state(trial.world))
            again(trial, expected)

    @pytest.mark.parametrize("request_name", [*REQUESTS, *OF_THE_CLOCK])
    @pytest.mark.parametrize("place", FOLDING, ids=str)
    @pytest.mark.matrix
    def test_after_a_defect_in_folding_the_sandbox_answers_503(
        self, base: Shop, request_name: str, place: Place
    ) -> None:
        """It is half changed, and nobody is shown that."""
        expected, trial = self.outcome(base, request_name), Trial(base, request_name)
        trial.warm()
        with Fault(place, 0) as fault:
            answer = trial.ask()
        if not fault.fired:
            same(expected.after, state(trial.world))
            return
        assert trial.world.status.is_broken
        assert answer.status in (500, 503)
        assert 503 == trial.ask().status

    @pytest.mark.parametrize("request_name", SHARING)
    @pytest.mark.parametrize("place", COPYING, ids=str)
    @pytest.mark.matrix
    def test_a_defect_in_folding_leaves_the_origin_of_a_copy_alone(
        self, base: Shop, request_name: str, place: Place
    ) -> None:
        """What the two share until one of them writes stays as it was for the other one."""
        origin = state(base.world)
        for turn in range(MOST):
            trial = Trial(base, request_name)
            with Fault(place, turn) as fault:
                trial.ask()
            same(origin, state(base.world))
            assert {} == stale(base.world)
            if not fault.fired:
                return


@pytest.mark.parametrize(
    ("places", "names"),
    [(DECIDING, [*REQUESTS, *SETTING]), (FOLDING, [*REQUESTS, *OF_THE_CLOCK]), (COPYING, SHARING)],
    ids=("deciding", "folding", "copying"),
)
def test_every_place_is_in_the_way_of_a_request(base: Shop, places: Iterable[Place], names: Iterable[str]) -> None:
    """A place that is never called proves nothing."""
    calls = Counter[Place]()
    for request_name in names:
        trial = Trial(base, request_name)
        if places is FOLDING:
            trial.warm()
        with ExitStack() as stack:
            counted = {place: stack.enter_context(Fault(place, NEVER)) for place in places}
            trial.ask()
        calls.update({place: fault.calls for place, fault in counted.items()})
    assert [] == [str(place) for place in places if not calls[place]]
