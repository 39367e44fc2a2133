"""Orders as they are placed: how long each can be paid, boletos, the copy of the buyer, and what is warned of."""

from collections.abc import Callable

import pytest

from stub_server.domain import boleto

from ..support.banking import boleto_due
from ..support.contract import document
from ..support.make import Json, created, make_customer, order_body
from ..support.make import make_project as new_project
from .members import METHODS, ask_order, at, billed, buyer, days, member, order, plan_of, waiting
from .stage import DAY, Stage
from .steps import done, refused, restricted_key

KNOWN = document().schema("Order")["properties"]["last_transaction"]["properties"]


# -- the end of every order


@pytest.mark.parametrize("method", METHODS)
def test_every_order_says_when_it_ends_and_ends_then(stage: Stage, method: str) -> None:
    """PIX and card after a day, a boleto after three banking days: a millisecond earlier it can be paid."""
    plan = plan_of(stage)
    new = order(stage, plan, waiting(method), method)
    end, created = new["last_transaction"]["expires_at"], at(new["createdAt"])
    assert (boleto_due(created) if method == "boleto" else created + days(1)) == at(end)
    stage.advance((at(end) - created).total_seconds() - 0.001)
    assert "pending" == stage.get_order(new["id"])["status"]
    stage.advance(0.001)
    after = stage.get_order(new["id"])
    assert ("expired", end, end) == (after["status"], after["updatedAt"], after["last_transaction"]["expires_at"])
    told = done(stage.control.get("/events", params={"resource_id": new["id"]}))["events"]
    assert [(type_, plan["projectId"], plan["id"]) for type_ in ("order.expired", "order.created")] == [
        (event["type"], event["data"]["projectId"], event["data"]["planId"]) for event in told
    ]
    answer = stage.control.post(f"/orders/{new['id']}/pay")
    refused(answer, 409, "order_not_payable")
    assert (method == "boleto") == ('{"late": true}' in answer.json()["message"])


@pytest.mark.parametrize("method", METHODS)
def test_a_magic_word_ends_an_order_of_any_method(stage: Stage, method: str) -> None:
    new = order(stage, plan_of(stage), buyer("expire_with_delay@example.com"), method)
    stage.advance(180)
    assert "expired" == stage.get_order(new["id"])["status"]


@pytest.mark.parametrize("method", METHODS)
def test_a_payment_cannot_have_come_after_the_end(stage: Stage, method: str) -> None:
    new = order(stage, plan_of(stage), waiting(method), method)
    response = stage.control.post(f"/orders/{new['id']}/pay", json={"paid_at": stage.after(1)})
    assert ["paid_at"] == list(refused(response, 409, "order_not_payable"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("state", ["pending", "paid", "refunded", "failed", "expired", "canceled", "disputed"])
def test_every_key_of_a_transaction_is_named_in_the_contract(stage: Stage, state: str, method: str) -> None:
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
    assert (44, 47, "9999", "0000123450") == (len(barcode), len(payment["line"]), barcode[:4], barcode[9:19])
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
    """Sold out and withdrawn, in a suspended project: the money is there, and the membership begins now."""
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


def test_a_boleto_is_paid_at_most_thirty_days_late(stage: Stage) -> None:
    """A millisecond after that, and by PIX at once, it is too late."""
    late = expired_boleto(stage, plan_of(stage))
    stage.advance(30 * DAY + 0.001)
    pix = order(stage, plan_of(stage), buyer())
    stage.drive("orders", pix["id"], "expire")
    for ident in (late["id"], pix["id"]):
        asked = stage.control.post(f"/orders/{ident}/pay", json={"late": True})
        assert ["status"] == list(refused(asked, 409, "order_not_payable"))
        assert [] == done(stage.control.get(f"/orders/{ident}"))["allowed"]


def test_a_late_boleto_renews_a_membership_that_is_past_due_from_its_old_end(stage: Stage) -> None:
    """As if it had been paid in time."""
    held = member(stage, plan_of(stage), method="boleto")
    bill = billed(stage, held)
    stage.drive("orders", bill["id"], "expire")
    stage.go_to(held["current_period_end"])
    assert "past_due" == stage.get_subscription(held["id"])["status"]
    stage.drive("orders", bill["id"], "pay", late=True)
    after = stage.get_subscription(held["id"])
    ends = at(held["current_period_end"])
    assert ("active", ends, ends + days(7)) == (
        after["status"],
        at(after["current_period_start"]),
        at(after["current_period_end"]),
    )


def test_a_late_boleto_opens_a_membership_anew_that_has_ended(stage: Stage) -> None:
    """Another one from now on: the ended one stays as it is."""
    held = member(stage, plan_of(stage), method="boleto")
    bill = billed(stage, held)
    stage.go_to(bill["last_transaction"]["expires_at"])
    ended = stage.get_subscription(held["id"])
    assert ("expired", "expired") == (ended["status"], stage.get_order(bill["id"])["status"])
    stage.drive("orders", bill["id"], "pay", late=True)
    anew = stage.subscription_of(bill["id"])
    assert (ended, "active", stage.now()) == (
        stage.get_subscription(held["id"]),
        anew["status"],
        anew["current_period_start"],
    )
    listed = done(stage.api.get("/v2/orders", params={"subscriptionId": anew["id"]}))["orders"]
    assert [bill["id"]] == [each["id"] for each in listed]
    assert done(stage.control.get("/invariants"))["ok"]


def test_a_membership_that_a_late_boleto_opens_in_an_archived_project_is_not_renewed(stage: Stage) -> None:
    """It ends with the period that is paid, as the others did."""
    plan = plan_of(stage)
    late = expired_boleto(stage, plan)
    done(stage.api.post(f"/v2/projects/{plan['projectId']}/archive"))
    stage.drive("orders", late["id"], "pay", late=True)
    held = stage.subscription_of(late["id"])
    assert (True, None) == (held["cancel_at_period_end"], held["next_billing_at"])
    stage.go_to(held["current_period_end"])
    assert "canceled" == stage.get_subscription(held["id"])["status"]


def test_two_boletos_have_two_barcodes(stage: Stage) -> None:
    plan = plan_of(stage)
    barcodes = {order(stage, plan, buyer(), "boleto")["last_transaction"]["barcode"] for _ in range(3)}
    assert 3 == len(barcodes)


@pytest.mark.check
@pytest.mark.parametrize("method", ["pix", "credit_card"])
def test_other_methods_have_no_barcode(stage: Stage, method: str) -> None:
    payment = order(stage, plan_of(stage), buyer(), method)["last_transaction"]
    assert {"line", "barcode", "due_at"}.isdisjoint(payment)


# -- the copy of the buyer


def test_the_copy_of_the_buyer_has_the_form_of_a_customer(stage: Stage) -> None:
    """Document without its mask, CEP as eight digits, e-mail in lower case; the customer who is made has the same."""
    who: Json = {
        "name": "Marina Duarte",
        "email": "Marina.DUARTE@Example.com",
        "document": "347.126.958-46",
        "address": {"line_1": "1374, Avenida Paulista", "zip_code": "01310-100", "state": "SP", "country": "BR"},
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
        ({"zip_code": "01310 100"}, "01310 100"),
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
    changed = done(stage.api.put(f"/v2/customers/{customer['id']}", json={"address": {"city": "X"} | address}))
    assert {"city": "X"} | address | {"zip_code": zip_code} == changed["customer"]["address"]


# -- accepted and warned of


@pytest.mark.parametrize(
    ("item", "total", "warned"),
    [
        (49.9, 49.9, None),
        (49.9, 60, "amount_mismatch"),
        (60, 60, "price_mismatch"),
        (60, 49.9, "amount_mismatch, price_mismatch"),
    ],
)
def test_items_that_come_to_another_sum_are_accepted_and_warned_of(
    stage: Stage, item: float, total: float, warned: str | None
) -> None:
    plan = plan_of(stage, amount=49.9)
    items = [{"description": "Plano", "quantity": 1, "amount": item}]
    response = ask_order(stage, plan, buyer(), items=items, totalAmount=total)
    assert (total, items) == (created(response)["totalAmount"], response.json()["items"])
    assert warned == response.headers.get("x-sandbox-warnings")


# -- why a payment fails

CODES = {
    "pix": ("insufficient_funds", "payer_limit_exceeded", "payer_account_blocked", "payer_bank_unavailable",
            "rejected_by_payer", "suspected_fraud", "provider_unavailable"),
    "credit_card": ("card_declined", "card_limit_exceeded", "card_expired", "suspected_fraud", "provider_unavailable"),
    "boleto": ("boleto_not_registered", "provider_unavailable"),
}  # fmt: skip
EVERY = document("sandbox.yaml").schema("SandboxFailure")["properties"]["code"]["enum"]


def test_every_code_belongs_to_a_method() -> None:
    assert set(EVERY) == {code for codes in CODES.values() for code in codes}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("code", EVERY)
@pytest.mark.matrix
def test_a_payment_fails_for_a_reason_of_its_method_alone(stage: Stage, method: str, code: str) -> None:
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


@pytest.mark.parametrize("method", METHODS)
def test_without_a_code_a_payment_fails_for_the_first_reason_of_its_method(stage: Stage, method: str) -> None:
    """On the control surface as by a magic address."""
    plan = plan_of(stage)
    new = order(stage, plan, waiting(method), method)
    shown = stage.drive("orders", new["id"], "fail")["order"]
    magic = order(stage, plan, buyer("fail_immediately@example.com"), method)
    assert ["failed", "failed"] == [shown["status"], magic["status"]]
    assert [CODES[method][0]] * 2 == [each["last_transaction"]["failure_code"] for each in (shown, magic)]


def test_an_order_that_is_over_says_so_before_it_judges_a_code_of_its_method(stage: Stage) -> None:
    new = order(stage, plan_of(stage), buyer())
    stage.drive("orders", new["id"], "cancel")
    response = stage.control.post(f"/orders/{new['id']}/fail", json={"code": "insufficient_funds"})
    refused(response, 409, "invalid_state_transition")


# -- who hears of a new customer


def test_a_customer_that_an_order_makes_is_told_to_the_webhooks_of_its_project(
    stage: Stage, deliveries: Callable[[Json], list[str]]
) -> None:
    """And to those of all projects; one who is made alone only to the latter."""
    plan = plan_of(stage)
    mine, whole = (stage.webhook(events=["customer.created"], projectId=p) for p in (plan["projectId"], None))
    other = stage.webhook(events=["customer.created"], projectId=new_project(stage.api)["id"])
    order(stage, plan, buyer())
    assert [1, 1, 0] == [len(deliveries(each)) for each in (mine, whole, other)]
    make_customer(stage.api)
    assert [1, 2, 0] == [len(deliveries(each)) for each in (mine, whole, other)]


@pytest.fixture
def deliveries(stage: Stage) -> Callable[[Json], list[str]]:
    """The events of a webhook's deliveries."""

    def of(webhook: Json) -> list[str]:
        return [log["event_id"] for log in done(stage.api.get(f"/v2/webhooks/{webhook['id']}/logs"))["logs"]]

    return of


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        ({}, None),
        ({"email": "MARINA@example.com"}, None),
        ({"email": "marina@example.org"}, "customer_differs"),
        ({"name": "Marina D. Lima"}, "customer_differs"),
    ],
)
def test_a_buyer_who_is_known_by_another_name_is_warned_of(stage: Stage, change: Json, warned: str | None) -> None:
    """The order keeps what was sent, and the customer stays."""
    known = make_customer(stage.api, name="Marina Duarte", email="marina@example.com")
    who = {name: known[name] for name in ("name", "email", "document")} | change
    response = ask_order(stage, plan_of(stage, amount=49.9), who)
    assert warned == response.headers.get("x-sandbox-warnings")
    copy = created(response)["customer"]
    assert (who["name"], who["email"].lower()) == (copy["name"], copy["email"])
    assert known == done(stage.api.get(f"/v2/customers/{known['id']}"))["customer"]


def test_a_customer_that_a_key_does_not_see_is_not_warned_of(stage: Stage) -> None:
    """Otherwise it would learn what the document's customer is called elsewhere."""
    known, plan = make_customer(stage.api), plan_of(stage, amount=49.9)
    body = order_body(plan["projectId"], plan["id"], customer=buyer() | {"document": known["document"]})
    with restricted_key(stage.api, plan["projectId"], "orders:write") as partner:
        hidden = partner.post("/v2/orders", json=body)
    assert (201, None) == (hidden.status_code, hidden.headers.get("x-sandbox-warnings"))
    assert "customer_differs" == stage.api.post("/v2/orders", json=body).headers["x-sandbox-warnings"]


def test_the_pix_operation_warns_of_the_same(stage: Stage) -> None:
    plan = plan_of(stage, amount=10)
    body = order_body(plan["projectId"], plan["id"], customer=buyer())
    response = stage.api.post("/v2/orders/pix", json=body)
    assert (201, "price_mismatch") == (response.status_code, response.headers["x-sandbox-warnings"])
