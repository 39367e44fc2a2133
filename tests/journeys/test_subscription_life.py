"""The states of a subscription: every move by each of its triggers, every other one refused."""

from collections.abc import Iterator

import pytest

from ..conftest import Serve
from ..support.contract import document
from .roads import AUTOPAY, LATE, ROADS, renewed_late_by_clock
from .stage import Stage, staged
from .steps import refused

LIFE = document().lifecycles["Subscription"]


@pytest.fixture
def prompt(serve: Serve, sink: str) -> Iterator[Stage]:
    """A merchant whose payers pay a minute after ordering."""
    with staged(serve(autopay=AUTOPAY), "stage", sink) as made:
        yield made


@pytest.fixture
def tardy(serve: Serve, sink: str) -> Iterator[Stage]:
    """A merchant whose payers pay 27 hours after ordering: too late for a daily plan, and within
    its grace.
    """
    with staged(serve(autopay=LATE), "stage", sink) as made:
        yield made


MOVES = [(m.from_, m.to, m.events[0], by) for m in LIFE.moves for by in m.by]


def test_every_trigger_of_every_move_has_a_road() -> None:
    assert set(MOVES) == set(ROADS)


@pytest.mark.parametrize(("from_", "to", "event", "by"), MOVES)
@pytest.mark.matrix
def test_every_move_of_a_subscription_happens_and_is_told_once(
    stage: Stage, request: pytest.FixtureRequest, from_: str, to: str, event: str, by: str
) -> None:
    (move,) = [m for m in LIFE.moves if (m.from_, m.to, m.events[0]) == (from_, to, event)]
    road = ROADS[from_, to, event, by]
    if road is renewed_late_by_clock:
        stage = request.getfixturevalue("tardy")
    elif by == "clock" and (from_ == "new" or event == "subscription.renewed"):
        stage = request.getfixturevalue("prompt")
    ident = road(stage)
    told = stage.events(ident)
    assert to == stage.get_subscription(ident)["status"]
    assert [1] * len(move.events) == [told.count(type_) for type_ in move.events], told
    first = told.index(move.events[0])
    assert list(move.events) == told[first : first + len(move.events)]


VERBS = {"cancel": "canceled", "renew": "active", "expire": "expired"}
LEGAL = {(m.from_, m.to) for m in LIFE.moves}
OTHERS = [
    (s, v)
    for s in LIFE.states
    for v, to in VERBS.items()
    if (s, to) not in LEGAL or (s, v) == ("trialing", "renew")
]


@pytest.mark.parametrize(("state", "verb"), [pair for pair in OTHERS if pair[0] != VERBS[pair[1]]])
def test_every_other_move_of_a_subscription_is_409(stage: Stage, state: str, verb: str) -> None:
    """From, to and the exits of the state; nothing changes and nothing is told.

    A trial has nothing to renew yet.
    """
    held = stage.subscription(state)
    told = stage.events(held["id"])
    response = stage.control.post(f"/subscriptions/{held['id']}/{verb}")
    refused(response, 409, "invalid_state_transition")
    body = response.json()
    assert f"{state} → {VERBS[verb]}" == body["details"][0]["message"]
    exits = {move.to for move in LIFE.exits(state)} - {state}
    assert all(exit_ in body["message"] for exit_ in exits)
    assert ("is final" in body["message"]) is (not exits)
    assert (held, told) == (stage.get_subscription(held["id"]), stage.events(held["id"]))
