"""The evidence ledger can fail: it knows what is missing, and what nobody documented."""

import pytest

from ..support.contract import document
from ..support.ledger import Answer, Fact, Ledger, operation_at, promised, serves_the_contract

OPERATIONS = document().operations
CREATED = Fact("createCustomer", "status", "201")


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A new one, told by servers that serve the contract."""
    monkeypatch.setattr(
        "tests.support.ledger.serves_the_contract", lambda origin, module: origin == "ours"
    )
    return Ledger(test="a test")


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("GET", "/v2/orders/pix", None),
        ("POST", "/s/alice/v2/orders/pix", "createPixOrder"),
        ("GET", "/v2/orders/not-an-id", "getOrder"),
        ("GET", "/v2/webhooks/logs", "listWebhookLogs"),
        ("GET", "/v2/webhooks/x/logs", "listLogsForWebhook"),
        ("GET", "/v2/customers/", None),
        ("POST", "/s/alice/_sandbox/orders/x/pay", "payOrder"),
        ("GET", "/console", None),
    ],
)
def test_a_request_means_the_operation_of_its_path(
    method: str, path: str, operation: str | None
) -> None:
    found = operation_at(method, path)
    assert operation == (found.id if found is not None else None)


def test_what_is_reached_is_no_gap(ledger: Ledger) -> None:
    everything = sum(len(promised(operation)) for operation in OPERATIONS.values())
    assert everything == len(ledger.gaps())
    ledger.answered("ours", Answer("POST", "/v2/customers", 201, None, False))
    assert {CREATED: "a test"} == ledger.reached
    assert everything - 1 == len(ledger.gaps())


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


def test_injected_faults_and_other_contracts_are_no_evidence(ledger: Ledger) -> None:
    ledger.answered("ours", Answer("POST", "/v2/customers", 409, "duplicate_document", True))
    ledger.answered("theirs", Answer("POST", "/v2/customers", 201, None, False))
    ledger.answered("ours", Answer("GET", "/v2/customers", 429, "rate_limited", False))
    assert {} == ledger.reached
    ledger.answered("ours", Answer("POST", "/v2/orders", 201, None, True))
    assert [Fact("createOrder", "status", "201")] == list(ledger.reached)


def test_a_server_that_is_not_there_serves_no_contract() -> None:
    assert serves_the_contract("http://127.0.0.1:9", "here") is False
