"""What counts as the same, or as right, however it is written: names, addresses,
documents, postal codes.
"""

import httpx2
import pytest

from ..support.make import (
    created,
    customer_body,
    done,
    fresh_cpf,
    make_order,
    make_plan,
    make_project,
)
from .steps import refused

NFD = "Programac\u0327a\u0303o"  # "Programação" in its decomposed form


def test_names_are_compared_without_blanks_and_composed(api: httpx2.Client) -> None:
    project = make_project(api, name="Clube de Programação")
    for name in ("Clube  de Programação ", f"clube de {NFD.lower()}", "\tClube de\tProgramação"):
        answer = api.post("/v2/projects", json={"name": name})
        refused(answer, 409, "duplicate_name")
    plan = make_plan(api, project["id"], name="Plano  Anual")
    assert plan["name"] == "Plano  Anual"  # stored as it was sent
    body = {"projectId": project["id"], "name": "plano anual", "amount": 10}
    refused(api.post("/v2/plans", json=body), 409, "duplicate_name")


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("HTTPS://hooks.example.com/a", 201),
        ("Http://hooks.example.com:65535/a", 201),
        ("http://hooks.example.com:65536/a", 422),
        ("http://hooks.example.com:0/a", 422),
    ],
)
def test_a_scheme_is_read_without_case_and_a_port_must_exist(
    api: httpx2.Client, url: str, status: int
) -> None:
    answer = api.post("/v2/webhooks", json={"url": url, "events": ["webhook.test"]})
    assert answer.status_code == status
    if status == 201:
        sent = done(api.post(f"/v2/webhooks/{answer.json()['webhook']['id']}/test"))
        assert "delivered" in str(sent)


@pytest.mark.parametrize("check_digits", [True, False])
def test_digits_of_other_scripts_are_named(
    api: httpx2.Client, control: httpx2.Client, *, check_digits: bool
) -> None:
    done(control.patch("/settings", json={"check_digits": check_digits}))
    arabic = "".join(chr(0x660 + int(digit)) for digit in fresh_cpf())
    answer = api.post("/v2/customers", json=customer_body(document=arabic))
    refused(answer, 422, "validation_error")
    assert "Write the document in digits 0 to 9." in answer.text


@pytest.mark.parametrize(
    ("document", "told", "kind"),
    [
        ("AB123", None, "passport"),
        ("FX1234567", None, "passport"),
        ("FX12345678", None, None),
        ("AB123456789", None, None),
        ("FX12345678", "passport", "passport"),
        ("A2345678901234567890", "passport", "passport"),
        ("A23456789012345678901", "passport", None),
    ],
)
def test_a_passport_is_inferred_from_five_to_nine_characters(
    api: httpx2.Client, document: str, told: str | None, kind: str | None
) -> None:
    body = customer_body(document=document) | ({} if told is None else {"document_type": told})
    answer = api.post("/v2/customers", json=body)
    if kind is None:
        refused(answer, 422, "validation_error")
    else:
        assert created(answer)["customer"]["document_type"] == kind


def test_a_payer_s_cpf_is_masked_and_a_cnpj_shown(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    plan = make_plan(api)
    for document, shown in (("52998224725", "***982247**"), ("11222333000181", "11222333000181")):
        buyer = {"name": "Quem Paga", "email": f"p{document}@example.com", "document": document}
        order = make_order(api, plan, customer=buyer)
        paid = done(control.post(f"/orders/{order['id']}/pay"))["order"]
        assert shown == paid["last_transaction"]["payer_document"]
