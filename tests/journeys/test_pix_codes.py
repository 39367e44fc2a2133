"""Paying by the text of a PIX code, as a bank's app does with what was copied from a checkout."""

import pytest

from stub_server.domain.brcode import crc16

from ..support.make import Json, done
from .stage import Stage
from .steps import refused


def code_of(order: Json) -> str:
    """The text to copy."""
    return str(order["last_transaction"]["qr_code"])


def test_the_order_that_shows_the_code_is_paid(stage: Stage) -> None:
    """By the payer who is named; the payment is the one that `payOrder` would have made.

    Blanks do not count.
    """
    other = stage.order()
    order = stage.order()
    payer = {"name": "Helena Souza", "document": "52998224725", "bank": "Nubank"}
    paid = done(
        stage.control.post("/pix/pay", json={"qr_code": f"  {code_of(order)}\n", "payer": payer})
    )
    assert (order["id"], "paid", "Helena Souza") == (
        paid["order"]["id"],
        paid["order"]["status"],
        paid["order"]["last_transaction"]["payer_name"],
    )
    assert ["order.created", "order.paid"] == stage.events(order["id"])
    assert "pending" == stage.get_order(other["id"])["status"]


def test_an_order_that_only_mentions_the_code_is_not_paid(stage: Stage) -> None:
    order = stage.order()
    item = {"description": code_of(order), "quantity": 1, "amount": 49.9}
    stage.order(items=[item])
    paid = done(stage.control.post("/pix/pay", json={"qr_code": code_of(order)}))
    assert order["id"] == paid["order"]["id"]


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("paid", "order_already_paid"),
        ("expired", "order_not_payable"),
        ("canceled", "order_not_payable"),
    ],
)
def test_a_code_that_cannot_be_paid_any_more_is_refused_for_its_order(
    stage: Stage, state: str, code: str
) -> None:
    """An order keeps its code when it has ended."""
    order = stage.order(state)
    refused(stage.control.post("/pix/pay", json={"qr_code": code_of(order)}), 409, code)


def test_another_amount_is_refused(stage: Stage) -> None:
    """A dynamic code carries its amount."""
    order = stage.order()
    answer = stage.control.post("/pix/pay", json={"qr_code": code_of(order), "amount": 1})
    refused(answer, 409, "order_not_payable")
    assert "pending" == stage.get_order(order["id"])["status"]


def test_a_mistyped_code_fails_its_checksum(stage: Stage) -> None:
    """The 404 says what the checksum should be."""
    code = code_of(stage.order())
    answer = stage.control.post("/pix/pay", json={"qr_code": code.replace("SANDBOX", "SANDBOY")})
    assert {"qr_code": "checksum"} == refused(answer, 404, "not_found")


@pytest.mark.parametrize("text", ["pix", "çã", "0" * 600])
def test_what_is_no_code_is_refused(stage: Stage, text: str) -> None:
    """With what is wrong about it."""
    answer = stage.control.post("/pix/pay", json={"qr_code": text})
    assert {"qr_code": "form"} == refused(answer, 404, "not_found")


def test_a_code_of_another_charge_is_not_found(stage: Stage) -> None:
    """A right code that no order of this sandbox shows."""
    code = code_of(stage.order())
    txid = stage.order()["id"].replace("-", "")
    foreign = code[:-4].replace(code.split("/qr/v2/")[1][:32], txid)
    answer = stage.control.post("/pix/pay", json={"qr_code": foreign + crc16(foreign)})
    refused(answer, 404, "not_found")
