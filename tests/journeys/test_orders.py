"""Orders as they are placed: what a transaction shows, boletos, postal codes and metadata.

When an order ends and is paid late, and what is warned of, is held to the model.
"""

import pytest

from stub_server.domain import boleto

from ..support.contract import document
from ..support.make import Json, done, make_customer, make_plan, order_body
from .members import METHODS, buyer, order, plan_of, waiting
from .stage import Stage

KNOWN = document().schema("Order")["properties"]["last_transaction"]["properties"]


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


@pytest.mark.parametrize("metadata", [{"behaviour": "x"}, {"note": "behaviour"}])
def test_metadata_about_behaviour_is_no_behaviour(stage: Stage, metadata: Json) -> None:
    plan = make_plan(stage.api)
    body = order_body(plan["projectId"], plan["id"], metadata=metadata)
    answer = stage.api.post("/v2/orders/pix", json=body)
    assert (201, None) == (answer.status_code, answer.headers.get("x-sandbox-simulated"))
