"""The states of an order: every move by each of its triggers. What is refused is held to the model."""

from collections.abc import Callable, Iterator

import pytest

from ..conftest import Serve
from ..support.contract import document
from ..support.make import Json, card_body, created, done, make_plan, order_body, typed
from .members import at, days, move
from .stage import DAY, Stage, by_code, staged
from .steps import archive, refused

ORDER = document().lifecycles["Order"]
AUTOPAY = 60


@pytest.fixture
def autopaid(serve: Serve, sink: str) -> Iterator[Stage]:
    """A merchant of a server whose payers pay a minute after ordering."""
    with staged(serve(autopay=AUTOPAY), "stage", sink) as made:
        yield made


def renewal(stage: Stage) -> tuple[Json, Json]:
    """A subscription before its renewal order's time, and what its renewal order will
    be found by.
    """
    held = stage.subscription("active")
    return held, {"planId": held["planId"]}


def newest(stage: Stage, query: Json) -> str:
    """The newest order that matches."""
    return typed(str, done(stage.api.get("/v2/orders", params=query))["orders"][0]["id"])


def by_renewal(stage: Stage) -> str:
    held, query = renewal(stage)
    stage.drive("subscriptions", held["id"], "renew")
    return newest(stage, query)


def by_due_renewal(stage: Stage) -> str:
    held, query = renewal(stage)
    stage.go_to(held["current_period_end"])
    return newest(stage, query)


def by_create_order(stage: Stage, email: str = "ana@example.com", path: str = "/v2/orders") -> str:
    plan = make_plan(stage.api)
    buyer = {"name": "Ana", "email": email, "document": "34712695846"}
    body = order_body(plan["projectId"], plan["id"], customer=buyer)
    return typed(str, created(stage.api.post(path, json=body))["id"])


def failing(path: str) -> Callable[[Stage], str]:
    return lambda stage: by_create_order(stage, "ana.fail_immediately@example.com", path)


def driven(state: str, verb: str, **body: object) -> Callable[[Stage], str]:
    def drive(stage: Stage) -> str:
        ident: str = stage.order(state)["id"]
        stage.drive("orders", ident, verb, **body)
        return ident

    return drive


def magic(token: str, seconds: float) -> Callable[[Stage], str]:
    def wait(stage: Stage) -> str:
        ident: str = stage.order(magic=token)["id"]
        stage.advance(seconds)
        return ident

    return wait


def clock_to_its_end(stage: Stage) -> str:
    order = stage.order()
    stage.go_to(order["last_transaction"]["expires_at"])
    return str(order["id"])


def boleto_order(stage: Stage, verb: str) -> str:
    """An order by boleto to which something has been done."""
    plan = make_plan(stage.api, payment_methods=["boleto"])
    body = order_body(plan["projectId"], plan["id"], paymentMethod="boleto")
    ident = str(created(stage.api.post("/v2/orders", json=body))["id"])
    stage.drive("orders", ident, verb)
    return ident


def paid_late(stage: Stage) -> str:
    """A boleto that its bank took after the last day."""
    ident = boleto_order(stage, "expire")
    stage.drive("orders", ident, "pay", late=True)
    return ident


def bill(stage: Stage) -> tuple[Json, str]:
    """A subscription with an open renewal order, and the order's id."""
    held = stage.subscription("active", interval="week")
    stage.advance(5 * 86_400)
    ident = stage.get_subscription(held["id"])["lastOrderId"]
    assert stage.get_order(ident)["status"] == "pending"
    return held, ident


def bill_of(
    verb: str, what: str = "subscriptions", state: str = "active"
) -> Callable[[Stage], str]:
    """The open bill of a subscription that is ended."""

    def end(stage: Stage) -> str:
        held, ident = bill(stage)
        if state == "past_due":
            stage.go_to(held["current_period_end"])
        stage.drive(what, held["id" if what == "subscriptions" else "orderId"], verb)
        return ident

    return end


def bill_beside(magic: str | None) -> Callable[[Stage], str]:
    """The open bill of a subscription that another order of the same customer renews."""

    def pay(stage: Stage) -> str:
        held, ident = bill(stage)
        customer = stage.get_order(held["orderId"])["customer"]
        customer |= {"email": f"{magic}@example.com"} if magic else {}
        body = order_body(held["projectId"], held["planId"], customer=customer)
        other = created(stage.api.post(PIX, json=body))
        if magic:
            stage.advance(1)
        else:
            stage.drive("orders", other["id"], "pay")
        return ident

    return pay


def by_card(stage: Stage) -> str:
    """A card pays its order as it is made."""
    body = card_body(make_plan(stage.api, payment_methods=["credit_card"]))
    return str(created(stage.api.post("/v2/orders", json=body))["id"])


def bill_beside_card(stage: Stage) -> str:
    """The open bill of a subscription that an order by card renews."""
    held, ident = bill(stage)
    done(
        stage.api.put(
            f"/v2/plans/{held['planId']}", json={"payment_methods": ["pix", "credit_card"]}
        )
    )
    customer = stage.get_order(held["orderId"])["customer"]
    body = card_body({"projectId": held["projectId"], "id": held["planId"]}, customer=customer)
    created(stage.api.post("/v2/orders", json=body))
    return ident


def by_failing_renewal(stage: Stage) -> str:
    held, _ = renewal(stage)
    done(
        stage.api.put(
            f"/v2/customers/{held['customerId']}", json={"email": "fail_immediately@example.com"}
        )
    )
    stage.drive("subscriptions", held["id"], "renew")
    return str(stage.get_subscription(held["id"])["lastOrderId"])


def archived(by: str) -> Callable[[Stage], str]:
    def close(stage: Stage) -> str:
        order = stage.order()
        project_id = done(stage.control.get(f"/orders/{order['id']}"))["projectId"]
        if by == "archiveProject":
            archive(stage.api, project_id)
        elif by == "updateProject":
            done(stage.api.put(f"/v2/projects/{project_id}", json={"status": "archived"}))
        else:
            done(stage.api.patch(f"/v2/projects/{project_id}/status", json={"status": "archived"}))
        return str(order["id"])

    return close


def bill_of_lost(stage: Stage) -> str:
    """The open bill of a subscription whose paid order is disputed and lost."""
    held, ident = bill(stage)
    stage.drive("orders", held["orderId"], "dispute")
    stage.drive("orders", held["orderId"], "dispute/resolve", outcome="lost")
    return ident


PIX = "/v2/orders/pix"
ROADS: dict[tuple[str, str, str], Callable[[Stage], str]] = {
    ("new", "pending", "createOrder"): by_create_order,
    ("new", "pending", "createPixOrder"): lambda stage: by_create_order(stage, path=PIX),
    ("new", "pending", "renewSubscription"): by_renewal,
    ("new", "pending", "clock"): by_due_renewal,
    ("new", "failed", "createOrder"): failing("/v2/orders"),
    ("new", "failed", "createPixOrder"): failing(PIX),
    ("new", "failed", "renewSubscription"): by_failing_renewal,
    ("new", "failed", "simulation"): failing(PIX),
    ("pending", "paid", "payOrder"): driven("pending", "pay"),
    ("pending", "paid", "createOrder"): by_card,
    ("pending", "paid", "renewSubscription"): by_renewal,
    ("pending", "paid", "simulation"): magic("succeed_immediately", 1),
    ("pending", "paid", "clock"): magic("marina", AUTOPAY),
    ("pending", "failed", "failOrder"): driven("pending", "fail", code="suspected_fraud"),
    ("pending", "expired", "clock"): clock_to_its_end,
    ("pending", "expired", "expireOrder"): driven("pending", "expire"),
    ("pending", "expired", "simulation"): magic("expire_with_delay", 180),
    ("pending", "canceled", "cancelOrder"): driven("pending", "cancel"),
    ("pending", "canceled", "payOrder"): bill_beside(None),
    ("pending", "canceled", "createOrder"): bill_beside_card,
    ("pending", "canceled", "refundOrder"): bill_of("refund", "orders"),
    ("pending", "canceled", "cancelSubscription"): bill_of("cancel"),
    ("pending", "canceled", "expireSubscription"): bill_of("expire", state="past_due"),
    ("pending", "canceled", "simulation"): bill_beside("succeed_immediately"),
    ("pending", "canceled", "clock"): bill_beside("succeed_immediately"),
    ("pending", "canceled", "archiveProject"): archived("archiveProject"),
    ("pending", "canceled", "updateProjectStatus"): archived("updateProjectStatus"),
    ("pending", "canceled", "updateProject"): archived("updateProject"),
    ("paid", "refunded", "refundOrder"): driven("paid", "refund"),
    ("paid", "refunded", "simulation"): magic("refund_after_payment", 60),
    ("paid", "refunded", "clock"): magic("refund_after_payment", 3600),
    ("paid", "paid", "refundOrder"): driven("paid", "refund", amount=9.9),
    ("paid", "disputed", "disputeOrder"): driven("paid", "dispute"),
    ("disputed", "refunded", "resolveDispute"): driven(
        "disputed", "dispute/resolve", outcome="lost"
    ),
    ("disputed", "paid", "resolveDispute"): driven("disputed", "dispute/resolve", outcome="won"),
    ("pending", "canceled", "resolveDispute"): bill_of_lost,
}
ROADS |= {
    (*key[:2], "payPixCode"): by_code(road)
    for key, road in list(ROADS.items())
    if key[2] == "payOrder"
}
ROADS["expired", "paid", "payOrder"] = paid_late
MOVES = [(m.from_, m.to, by) for m in ORDER.moves for by in m.by]


def test_every_trigger_of_every_move_has_a_road() -> None:
    assert set(MOVES) == set(ROADS)


@pytest.mark.parametrize(("from_", "to", "by"), MOVES)
@pytest.mark.matrix
def test_every_move_of_an_order_happens_and_is_told_once(
    stage: Stage, request: pytest.FixtureRequest, from_: str, to: str, by: str
) -> None:
    """The move's events stand in the log once, the order is where they say, and its
    payment agrees.
    """
    move = ORDER.find(from_, to)
    assert move is not None
    if (from_, to, by) == ("pending", "paid", "clock"):
        stage = request.getfixturevalue("autopaid")
    ident = ROADS[from_, to, by](stage)
    told = stage.events(ident)
    assert [told.count(type_) for type_ in move.events] == [1] * len(move.events), told
    order = stage.get_order(ident)
    if from_ != "new" or to == "failed":
        assert (to, move.events[-1]) == (order["status"], told[-1])
    payment = {"pending": "waiting_payment", "paid": "paid"} | {
        s: s for s in ORDER.states if s not in ("pending", "paid")
    }
    expected = "partially_refunded" if (from_, to) == ("paid", "paid") else payment[order["status"]]
    assert expected == order["last_transaction"]["status"]
    went_wrong = order["status"] in ("failed", "expired", "canceled")
    assert ("false" if went_wrong else "true") == order["last_transaction"]["success"]


VERBS = {
    "pay": "paid",
    "fail": "failed",
    "expire": "expired",
    "cancel": "canceled",
    "refund": "refunded",
}
VERBS |= {"dispute": "disputed"}
OTHERS = [
    (state, verb)
    for state in ORDER.states
    for verb, to in VERBS.items()
    if ORDER.find(state, to) is None or (state != to and verb not in ORDER.controls(state))
]
OTHERS.append(("expired", "pay"))  # of a PIX order; only a boleto is paid late


def test_only_a_boleto_that_expired_is_paid_late(stage: Stage) -> None:
    def refusal(ident: str, **body: object) -> str:
        answer = stage.control.post(f"/orders/{ident}/pay", json=body)
        refused(answer, 409, "order_not_payable")
        return typed(str, answer.json()["message"])

    refusal(boleto_order(stage, "cancel"), late=True)
    assert '{"late": true}' in refusal(boleto_order(stage, "expire"))
    assert "late" not in refusal(stage.order("expired")["id"])


def test_an_open_renewal_order_is_postponed_with_its_subscription(stage: Stage) -> None:
    held, ident = bill(stage)
    before = stage.get_order(ident)["last_transaction"]
    move(stage, held, "suspend")
    stage.advance(3 * DAY)
    move(stage, held, "activate")
    stage.advance(1)
    after = stage.get_order(ident)["last_transaction"]
    assert days(3) == at(after["expires_at"]) - at(before["expires_at"])


@pytest.mark.parametrize("state", ORDER.states)
def test_an_order_says_what_can_be_done_with_it(stage: Stage, state: str) -> None:
    """By the verbs of the control surface: those that move it to another state."""
    shown = done(stage.control.get(f"/orders/{stage.order(state)['id']}"))
    expected = [verb for verb, to in VERBS.items() if to != state and (state, verb) not in OTHERS]
    assert expected + (["resolve_dispute"] if state == "disputed" else []) == shown["allowed"]
