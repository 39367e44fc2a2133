"""The states of a subscription: every move by each of its triggers, every other one refused."""

from collections.abc import Callable, Iterator

import pytest

from ..conftest import Serve
from ..support.contract import document
from ..support.make import Json, make_plan
from .stage import DAY, Stage, staged
from .steps import done, refused

LIFE = document().lifecycles["Subscription"]
AUTOPAY = 60
LATE = 27 * 3600  # longer than the lead of a daily plan and shorter than its lead and grace


@pytest.fixture
def prompt(serve: Serve, sink: str) -> Iterator[Stage]:
    """A merchant whose payers pay a minute after ordering."""
    with staged(serve(autopay=AUTOPAY), "stage", sink) as made:
        yield made


@pytest.fixture
def tardy(serve: Serve, sink: str) -> Iterator[Stage]:
    """A merchant whose payers pay 27 hours after ordering: too late for a daily plan, and within its grace."""
    with staged(serve(autopay=LATE), "stage", sink) as made:
        yield made


def paid(trial: int = 0, magic: str | None = None, wait: float = 0) -> Callable[[Stage], str]:
    """An order for a plan, paid by hand or by waiting."""

    def open_(stage: Stage) -> str:
        order = stage.order("pending", make_plan(stage.api, trial_period_days=trial), magic)
        if wait:
            stage.advance(wait)
        else:
            stage.drive("orders", order["id"], "pay")
        return str(stage.subscription_of(order["id"])["id"])

    return open_


def driven(state: str, verb: str, **body: object) -> Callable[[Stage], str]:
    def drive(stage: Stage) -> str:
        ident: str = stage.subscription(state)["id"]
        stage.drive("subscriptions", ident, verb, **body)
        return ident

    return drive


def waiting(until: str, state: str = "active") -> Callable[[Stage], str]:
    """To the end of the trial or of the paid period."""

    def wait(stage: Stage) -> str:
        held = stage.subscription(state)
        stage.go_to(held[until])
        return str(held["id"])

    return wait


def renewal_due(stage: Stage) -> Json:
    """An active subscription whose renewal order waits to be paid."""
    held = stage.subscription("active")
    while stage.get_subscription(held["id"])["lastOrderId"] == held["orderId"]:
        stage.advance(DAY)
    return stage.get_subscription(held["id"])


def renewed_by_hand(stage: Stage) -> str:
    held = renewal_due(stage)
    stage.drive("orders", held["lastOrderId"], "pay")
    return str(held["id"])


def renewed_late_by_hand(stage: Stage) -> str:
    held = stage.subscription("past_due")
    stage.drive("orders", held["lastOrderId"], "pay")
    return str(held["id"])


def renewed_by_magic(stage: Stage) -> str:
    """The renewal order has the buyer's e-mail address, and so his luck."""
    held = stage.subscription("active", magic="succeed_immediately")
    stage.go_to(held["current_period_end"])
    return str(held["id"])


def renewed_late_by_magic(stage: Stage) -> str:
    """The project stands still until a minute before the end; the renewal order made then is paid in three."""
    plan = make_plan(stage.api)
    order = stage.order("pending", plan, "succeed_with_delay")
    stage.advance(180)
    held = stage.subscription_of(order["id"])
    done(stage.api.post(f"/v2/projects/{plan['projectId']}/suspend"))
    stage.go_to(held["current_period_end"].replace(held["current_period_end"][10:], "T00:00:00Z"))
    while stage.after(60) < held["current_period_end"]:
        stage.advance(50)
    done(stage.api.post(f"/v2/projects/{plan['projectId']}/activate"))
    stage.go_to(held["current_period_end"])
    assert stage.get_subscription(held["id"])["status"] == "past_due"
    stage.advance(180)
    return str(held["id"])


def renewed_by_clock(stage: Stage) -> str:
    order = stage.order("pending", make_plan(stage.api))
    stage.advance(AUTOPAY)
    held = stage.subscription_of(order["id"])
    stage.go_to(held["current_period_end"])
    return str(held["id"])


def renewed_late_by_clock(stage: Stage) -> str:
    order = stage.order("pending", make_plan(stage.api, interval="day"), totalAmount=1)
    stage.drive("orders", order["id"], "pay")
    held = stage.subscription_of(order["id"])
    stage.go_to(held["current_period_end"])
    assert stage.get_subscription(held["id"])["status"] == "past_due"
    stage.advance(18 * 3600)
    return str(held["id"])


def given_up(stage: Stage) -> str:
    ident: str = stage.subscription("past_due")["id"]
    stage.advance(7 * DAY)
    return ident


def refunded(state: str) -> Callable[[Stage], str]:
    def refund(stage: Stage) -> str:
        held = stage.subscription(state)
        stage.drive("orders", held["orderId"], "refund")
        return str(held["id"])

    return refund


def refunded_by_magic(state: str) -> Callable[[Stage], str]:
    def refund(stage: Stage) -> str:
        held = stage.subscription(state, magic="refund_after_payment")
        stage.advance(60)
        return str(held["id"])

    return refund


def ended_with_its_period(stage: Stage) -> str:
    held = stage.subscription("active")
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    stage.go_to(held["current_period_end"])
    return str(held["id"])


ROADS: dict[tuple[str, str, str, str], Callable[[Stage], str]] = {
    ("new", "active", "subscription.created", "payOrder"): paid(),
    ("new", "active", "subscription.created", "simulation"): paid(magic="succeed_immediately", wait=1),
    ("new", "active", "subscription.created", "clock"): paid(wait=AUTOPAY),
    ("new", "trialing", "subscription.created", "payOrder"): paid(7),
    ("new", "trialing", "subscription.created", "simulation"): paid(7, "succeed_with_delay", 180),
    ("new", "trialing", "subscription.created", "clock"): paid(7, wait=AUTOPAY),
    ("trialing", "active", "subscription.activated", "clock"): waiting("trial_end", "trialing"),
    ("active", "active", "subscription.renewed", "payOrder"): renewed_by_hand,
    ("active", "active", "subscription.renewed", "renewSubscription"): driven("active", "renew"),
    ("active", "active", "subscription.renewed", "simulation"): renewed_by_magic,
    ("active", "active", "subscription.renewed", "clock"): renewed_by_clock,
    ("past_due", "active", "subscription.renewed", "payOrder"): renewed_late_by_hand,
    ("past_due", "active", "subscription.renewed", "renewSubscription"): driven("past_due", "renew"),
    ("past_due", "active", "subscription.renewed", "simulation"): renewed_late_by_magic,
    ("past_due", "active", "subscription.renewed", "clock"): renewed_late_by_clock,
    ("active", "active", "subscription.renewal_due", "clock"): lambda stage: str(renewal_due(stage)["id"]),
    ("active", "past_due", "subscription.past_due", "clock"): waiting("current_period_end"),
    ("past_due", "expired", "subscription.expired", "clock"): given_up,
    ("past_due", "expired", "subscription.expired", "expireSubscription"): driven("past_due", "expire"),
    ("trialing", "canceled", "subscription.canceled", "cancelSubscription"): driven("trialing", "cancel"),
    ("trialing", "canceled", "subscription.canceled", "refundOrder"): refunded("trialing"),
    ("trialing", "canceled", "subscription.canceled", "simulation"): refunded_by_magic("trialing"),
    ("trialing", "canceled", "subscription.canceled", "clock"): refunded_by_magic("trialing"),
    ("active", "canceled", "subscription.canceled", "cancelSubscription"): driven("active", "cancel"),
    ("active", "canceled", "subscription.canceled", "refundOrder"): refunded("active"),
    ("active", "canceled", "subscription.canceled", "simulation"): refunded_by_magic("active"),
    ("active", "canceled", "subscription.canceled", "clock"): ended_with_its_period,
    ("past_due", "canceled", "subscription.canceled", "cancelSubscription"): driven("past_due", "cancel"),
    ("past_due", "canceled", "subscription.canceled", "refundOrder"): refunded("past_due"),
}
MOVES = [(m.from_, m.to, m.events[0], by) for m in LIFE.moves for by in m.by]


def test_every_trigger_of_every_move_has_a_road() -> None:
    assert set(MOVES) == set(ROADS)


@pytest.mark.parametrize(("from_", "to", "event", "by"), MOVES)
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
    (s, v) for s in LIFE.states for v, to in VERBS.items() if (s, to) not in LEGAL or (s, v) == ("trialing", "renew")
]


@pytest.mark.parametrize(("state", "verb"), [pair for pair in OTHERS if pair[0] != VERBS[pair[1]]])
def test_every_other_move_of_a_subscription_is_409(stage: Stage, state: str, verb: str) -> None:
    """From, to and the exits of the state; nothing changes and nothing is told. A trial has nothing to renew yet."""
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


@pytest.mark.parametrize(("state", "verb"), [("canceled", "cancel"), ("expired", "expire")])
def test_a_move_to_the_present_state_changes_and_tells_nothing(stage: Stage, state: str, verb: str) -> None:
    held = stage.subscription(state)
    told = stage.events(held["id"])
    assert held == stage.drive("subscriptions", held["id"], verb)["subscription"]
    assert (held, told) == (stage.get_subscription(held["id"]), stage.events(held["id"]))


@pytest.mark.parametrize("state", ["trialing", "active", "past_due"])
def test_to_cancel_at_the_end_of_the_period_changes_no_state_and_is_no_event(stage: Stage, state: str) -> None:
    held = stage.subscription(state)
    told = stage.events(held["id"])
    for _ in range(2):
        stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    now = stage.get_subscription(held["id"])
    assert (state, True, None) == (now["status"], now["cancel_at_period_end"], now["next_billing_at"])
    assert told == stage.events(held["id"])


@pytest.mark.parametrize("state", ["canceled", "expired"])
def test_whoever_pays_again_gets_a_new_subscription_without_a_second_trial(stage: Stage, state: str) -> None:
    held = stage.subscription(state)
    plan = done(stage.api.put(f"/v2/plans/{held['planId']}", json={"trial_period_days": 7}))["plan"]
    first = stage.get_order(held["orderId"])
    order = stage.api.post(
        "/v2/orders/pix",
        json={"projectId": plan["projectId"], "planId": plan["id"], "totalAmount": 49.9}
        | {"items": first["items"], "customer": first["customer"]},
    ).json()
    stage.drive("orders", order["id"], "pay")
    again = stage.subscription_of(order["id"])
    assert (held["customerId"], "active", None) == (again["customerId"], again["status"], again["trial_end"])
    assert again["id"] != held["id"]


def test_a_one_time_plan_makes_no_subscription(stage: Stage) -> None:
    order = stage.order("paid", make_plan(stage.api, billing_type="one_time"))
    assert done(stage.control.get(f"/orders/{order['id']}"))["subscriptionId"] is None
    assert done(stage.api.get("/v2/subscriptions"))["pagination"]["total"] == 0
