"""The evidence ledger can fail: it knows what nobody documented."""

import pytest

from ..support.contract import document
from ..support.ledger import Answer, Fact, Ledger

OPERATIONS = document().operations


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A new one, told by servers that serve the contract."""
    monkeypatch.setattr(
        "tests.support.ledger.serves_the_contract", lambda origin, module: origin == "ours"
    )
    return Ledger(test="a test")


@pytest.mark.parametrize(
    ("status", "code"),
    [(202, None), (500, "internal_error"), (409, "duplicate_sku"), (404, "not_found")],
)
def test_what_the_contract_does_not_list_is_reported(
    ledger: Ledger, status: int, code: str | None
) -> None:
    ledger.answered("ours", Answer("POST", "/v2/customers", status, code, False))
    assert [f"createCustomer answered {status} {code or ''}".rstrip()] == ledger.take_undocumented()
    assert [] == ledger.take_undocumented()
    assert {} == ledger.reached


def test_an_event_that_the_operation_does_not_list_is_reported(ledger: Ledger) -> None:
    ledger.raised(OPERATIONS["createCustomer"], ["customer.created", "plan.created"])
    assert ["createCustomer emitted plan.created"] == ledger.take_undocumented()
    assert [Fact("createCustomer", "event", "customer.created")] == list(ledger.reached)
