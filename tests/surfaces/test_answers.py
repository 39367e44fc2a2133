"""The server holds its own answers to the contract: a handler that strays is a 500, never an
undocumented answer.
"""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from stub_server.core.problem import Refusal
from stub_server.operations import customers
from stub_server.server import reply
from stub_server.server.reply import Reply
from stub_server.server.work import Work

from ..support.contract import document
from ..support.live import FROZEN, running
from ..support.make import customer_body
from ..support.refusal import refused
from .conftest import door_to

# The ledger of evidence knows that these answers are meant.
pytestmark = [pytest.mark.defects, pytest.mark.check]
ID = "00000000-0000-4000-8000-000000000000"
GOOD = document().raw["components"]["examples"]["CustomerReply"]["value"]["customer"] | {"id": ID}


def framed(customer: Any, status: int = 200, **members: Any) -> Reply:
    """An answer that is written for this one time."""
    return reply.value({"error": False, "message": "Here.", "customer": customer} | members, status)


def raising(error: BaseException) -> Callable[[], Reply]:
    """A handler's body that fails."""

    def answer() -> Reply:
        raise error

    return answer


STRAY: dict[str, Callable[[], Reply]] = {
    "an undocumented success": lambda: framed(GOOD, 202),
    "a documented success of another operation": lambda: framed(GOOD, 201),
    "an undocumented refusal": lambda: reply.value({"error": True}, 418),
    "a member too many": lambda: framed(GOOD, extra=1),
    "a member too few": lambda: reply.value({"error": False, "message": "Here."}),
    "a wrong type": lambda: framed(GOOD | {"name": 1}),
    "a wrong format": lambda: framed(GOOD | {"createdAt": "yesterday"}),
    "a value outside its enum": lambda: framed(GOOD | {"type": "robot"}),
    "a secret member": lambda: framed(GOOD | {"private_key": "sk"}),
    "no customer at all": lambda: framed(None),
    "another media type": lambda: Reply(200, (b"<p>",), None, (), b"text/html"),
    "not JSON": lambda: Reply(200, (b"{",)),
    "an exception": raising(RuntimeError("the secret of the handler")),
    "a refusal without a class": raising(Refusal("Oops.")),
}


@pytest.mark.parametrize("what", STRAY)
def test_an_answer_that_the_contract_does_not_list_is_500_in_the_one_shape(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    """And tells nothing of the inside; the log names the request id."""

    def get_customer(work: Work, customer_id: str) -> Reply:
        return STRAY[what]()

    monkeypatch.setattr(customers, "get_customer", get_customer)
    with caplog.at_level(logging.ERROR), running(FROZEN) as server:
        answer = door_to(server).ask("GET", f"/v2/customers/{ID}")
        body = refused(answer, 500, "internal_error")
    assert "secret" not in answer.body.decode()
    if what != "a refusal without a class":
        assert body["request_id"] in caplog.text


def test_the_same_handler_answering_right_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness that the tests above fail for what they say."""

    def get_customer(work: Work, customer_id: str) -> Reply:
        return framed(GOOD)

    monkeypatch.setattr(customers, "get_customer", get_customer)
    with running(FROZEN) as server:
        answer = door_to(server).ask("GET", f"/v2/customers/{ID}")
    assert (200, GOOD) == (answer.status, answer.json()["customer"])


def test_a_missing_location_is_caught_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_customer(work: Work, body: dict[str, Any]) -> Reply:
        return framed(GOOD, 201)

    monkeypatch.setattr(customers, "create_customer", create_customer)
    with running(FROZEN) as server:
        refused(
            door_to(server).send("POST", "/v2/customers", customer_body()), 500, "internal_error"
        )
