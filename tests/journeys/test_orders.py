"""Orders as they are placed: how long each can be paid, boletos, the copy of the buyer, and what is
warned of.
"""

import pytest

from stub_server.domain import boleto

from ..support.banking import boleto_due
from ..support.contract import document
from ..support.make import Json, created, make_customer, make_plan, order_body
from .members import METHODS, ask_order, at, buyer, days, order, plan_of, waiting
from .stage import DAY, Stage
from .steps import done, refused

KNOWN = document().schema("Order")["properties"]["last_transaction"]["properties"]


# -- the end of every order


@pytest.mark.parametrize("method", METHODS)
def test_every_order_says_when_it_ends_and_ends_then(stage: Stage, method: str) -> None:
    """PIX and card after a day, a boleto after three banking days: a millisecond earlier
    it can be paid.
    """
    plan = plan_of(stage)
    new = order(stage, plan, waiting(method), method)
    end, created = new["last_transaction"]["expires_at"], at(new["createdAt"])
    assert (boleto_due(created) if method == "boleto" else created + days(1)) == at(end)
    stage.advance((at(end) - created).total_seconds() - 0.001)
    assert "pending" == stage.get_order(new["id"])["status"]
    stage.advance(0.001)
    after = stage.get_order(new["id"])
    assert ("expired", end, end) == (
        after["status"],
        after["updatedAt"],
        after["last_transaction"]["expires_at"],
    )
    told = done(stage.control.get("/events", params={"resource_id": new["id"]}))["events"]
    assert [
        (type_, plan["projectId"], plan["id"]) for type_ in ("order.expired", "order.created")
    ] == [(event["type"], event["data"]["projectId"], event["data"]["planId"]) for event in told]
    answer = stage.control.post(f"/orders/{new['id']}/pay")
    refused(answer, 409, "order_not_payable")
    assert (method == "boleto") == ('{"late": true}' in answer.json()["message"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "state", ["pending", "paid", "refunded", "failed", "expired", "canceled", "disputed"]
)
def test_every_key_of_a_transaction_is_named_in_the_contract(
    stage: Stage, state: str, method: str
) -> None:
    new = order(stage, plan_of(stage), waiting(method), method)
    if state == "disputed" and method == "boleto":
        return  # nobody disputes a boleto
    if state in ("refunded", "disputed"):
        stage.drive("orders", new["id"], "pay")
    verbs = {
        "disputed": "dispute",
        "paid": "pay",
        "refunded": "refund",
        "failed": "fail",
        "expired": "expire",
        "canceled": "cancel",
    }
    if state in verbs:
        stage.drive("orders", new["id"], verbs[state])
    shown = stage.get_order(new["id"])
    assert state == shown["status"]
    assert shown["last_transaction"].keys() <= KNOWN.keys()
    assert all(isinstance(value, str) for value in shown["last_transaction"].values())


# -- boletos


def test_a_boleto_has_a_line_and_a_barcode_that_nobody_can_pay(stage: Stage) -> None:
    """Its amount, its due day and the bank 999; nothing of a PIX code."""
    new = order(stage, plan_of(stage), buyer(), "boleto", totalAmount=1234.5)
    payment = new["last_transaction"]
    barcode = payment["barcode"]
    assert (44, 47, "9999", "0000123450") == (
        len(barcode),
        len(payment["line"]),
        barcode[:4],
        barcode[9:19],
    )
    assert payment["line"] == boleto.line(barcode)
    assert int(barcode[4]) == boleto.modulo_11(barcode[:4] + barcode[5:])
    assert payment["due_at"] == payment["expires_at"]
    assert {"qr_code", "qr_code_url", "txid"}.isdisjoint(payment)


def expired_boleto(stage: Stage, plan: Json) -> Json:
    """A boleto that nobody has paid in time."""
    new = order(stage, plan, buyer(), "boleto")
    stage.go_to(new["last_transaction"]["expires_at"])
    return stage.get_order(new["id"])


def test_a_boleto_is_paid_late_whatever_became_of_its_plan(stage: Stage) -> None:
    """Sold out and withdrawn, in a suspended project: the money is there, and the
    membership begins now.
    """
    plan = plan_of(stage, max_subscribers=1)
    late = expired_boleto(stage, plan)
    stage.drive("orders", order(stage, plan, buyer())["id"], "pay")
    done(stage.api.put(f"/v2/plans/{plan['id']}", json={"status": "inactive"}))
    stage.advance(29 * DAY)
    done(stage.api.post(f"/v2/projects/{plan['projectId']}/suspend"))
    refused(stage.control.post(f"/orders/{late['id']}/pay"), 409, "order_not_payable")
    assert ["pay"] == done(stage.control.get(f"/orders/{late['id']}"))["allowed"]
    paid = stage.drive("orders", late["id"], "pay", late=True)["order"]
    assert ("paid", stage.now()) == (paid["status"], paid["last_transaction"]["paid_at"])
    assert late["last_transaction"]["due_at"] == paid["last_transaction"]["due_at"]
    assert ["order.created", "order.expired", "order.paid"] == stage.events(late["id"])
    held = stage.subscription_of(late["id"])
    assert ("active", stage.now()) == (held["status"], held["current_period_start"])


# -- the copy of the buyer


def test_the_copy_of_the_buyer_has_the_form_of_a_customer(stage: Stage) -> None:
    """Document without its mask, CEP as eight digits, e-mail in lower case; the customer who is
    made has the same.
    """
    who: Json = {
        "name": "Marina Duarte",
        "email": "Marina.DUARTE@Example.com",
        "document": "347.126.958-46",
        "address": {
            "line_1": "1374, Avenida Paulista",
            "zip_code": "01310-100",
            "state": "SP",
            "country": "BR",
        },
    }
    new = order(stage, plan_of(stage), who)
    shown = new["customer"]
    assert ("34712695846", "marina.duarte@example.com") == (shown["document"], shown["email"])
    assert who["address"] | {"zip_code": "01310100"} == shown["address"]
    ident = done(stage.control.get(f"/orders/{new['id']}"))["customerId"]
    customer = done(stage.api.get(f"/v2/customers/{ident}"))["customer"]
    assert (shown["document"], shown["email"], shown["address"]) == (
        customer["document"],
        customer["email"],
        customer["address"],
    )


@pytest.mark.parametrize(
    ("address", "zip_code"),
    [
        ({"zip_code": "01.310-100", "country": "BR"}, "01310100"),
        ({"zip_code": "01310-100"}, "01310100"),
        ({"zip_code": "01310100", "country": "BR"}, "01310100"),
        ({"zip_code": "1310-100", "country": "BR"}, "1310-100"),
        ({"zip_code": "12345-678", "country": "PT"}, "12345-678"),
        ({"zip_code": " 01310 100"}, "01310100"),
    ],
)
def test_a_cep_loses_its_punctuation_and_anything_else_stays_as_sent(
    stage: Stage, address: Json, zip_code: str
) -> None:
    """In an order, in a customer that is made, and in one that is changed."""
    shown = order(stage, plan_of(stage), buyer() | {"address": address})["customer"]["address"]
    assert address | {"zip_code": zip_code} == shown
    customer = make_customer(stage.api, address=address)
    assert zip_code == customer["address"]["zip_code"]
    changed = done(
        stage.api.put(f"/v2/customers/{customer['id']}", json={"address": {"city": "X"} | address})
    )
    assert {"city": "X"} | address | {"zip_code": zip_code} == changed["customer"]["address"]


# -- why a payment fails

CODES = {
    "pix": ("insufficient_funds", "payer_limit_exceeded", "payer_account_blocked", "payer_bank_unavailable",
            "rejected_by_payer", "suspected_fraud", "provider_unavailable"),
    "credit_card": ("card_declined", "card_limit_exceeded", "card_expired", "suspected_fraud", "provider_unavailable"),
    "boleto": ("boleto_not_registered", "provider_unavailable"),
}  # fmt: skip
EVERY = document("sandbox.yaml").schema("SandboxFailure")["properties"]["code"]["enum"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("code", EVERY)
@pytest.mark.matrix
def test_a_payment_fails_for_a_reason_of_its_method_alone(
    stage: Stage, method: str, code: str
) -> None:
    new = order(stage, plan_of(stage), waiting(method), method)
    response = stage.control.post(f"/orders/{new['id']}/fail", json={"code": code})
    if code in CODES[method]:
        assert ("failed", code) == (
            done(response)["order"]["status"],
            response.json()["order"]["last_transaction"]["failure_code"],
        )
        return
    assert ["code"] == list(refused(response, 409, "failure_code_not_applicable"))
    assert all(known in response.json()["message"] for known in CODES[method])
    assert new == stage.get_order(new["id"])


# -- who hears of a new customer


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        ({}, None),
        ({"email": "MARINA@example.com"}, None),
        ({"email": "marina@example.org"}, "customer_differs"),
        ({"name": "Marina D. Lima"}, "customer_differs"),
    ],
)
def test_a_buyer_who_is_known_by_another_name_is_warned_of(
    stage: Stage, change: Json, warned: str | None
) -> None:
    """The order keeps what was sent, and the customer stays."""
    known = make_customer(stage.api, name="Marina Duarte", email="marina@example.com")
    who = {name: known[name] for name in ("name", "email", "document")} | change
    response = ask_order(stage, plan_of(stage, amount=49.9), who)
    assert warned == response.headers.get("x-sandbox-warnings")
    copy = created(response)["customer"]
    assert (who["name"], who["email"].lower()) == (copy["name"], copy["email"])
    assert known == done(stage.api.get(f"/v2/customers/{known['id']}"))["customer"]


@pytest.mark.parametrize("metadata", [{"behaviour": "x"}, {"note": "behaviour"}])
def test_metadata_about_behaviour_is_no_behaviour(stage: Stage, metadata: Json) -> None:
    plan = make_plan(stage.api)
    body = order_body(plan["projectId"], plan["id"], metadata=metadata)
    answer = stage.api.post("/v2/orders/pix", json=body)
    assert (201, None) == (answer.status_code, answer.headers.get("x-sandbox-simulated"))
