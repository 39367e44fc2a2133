"""Query parameters: strictly spelled, once each; what the contract does not know is ignored and
said so.
"""

import pytest

from ..support.refusal import fields, refused, says
from ..support.wire import Door


@pytest.mark.parametrize(
    "text",
    [
        "1_0", "%205", "5%20", "+5", "%2B5", "01", "00", "-0x1", "1.0", "1e1", "0x10", "%D9%A3", "%EF%BC%91", "", "abc",
        "null", "true", "5%0A", "5%00", "--1", "%C2%B2", "1,2", "[1]",
    ],
)  # fmt: skip
def test_an_integer_is_nothing_else(door: Door, text: str) -> None:
    """Python's int() would take several of these."""
    answer = door.ask("GET", f"/v2/customers?limit={text}")
    assert fields(refused(answer, 422, "validation_error")) == {"limit": "type"}


@pytest.mark.parametrize("path", ["/v2/customers", "/_sandbox/requests", "/v2/webhooks/logs"])
@pytest.mark.parametrize("page", [2**53, 10**18, 10**20 - 1])
def test_a_page_whose_number_a_client_could_not_read_back_is_refused(
    door: Door, path: str, page: int
) -> None:
    """It was answered with another number than was sent."""
    (detail,) = refused(door.ask("GET", f"{path}?page={page}"), 422, "validation_error")["details"]
    assert "max" == detail["code"]
    assert says(detail["message"], page, 2**53 - 1)


@pytest.mark.parametrize(
    "text", ["TRUE", "True", "1", "0", "yes", "on", "", "null", "%20true", "false%0A", "truefalse"]
)
def test_a_boolean_is_nothing_else(door: Door, text: str) -> None:
    answer = door.ask("GET", f"/api-keys?is_active={text}")
    assert fields(refused(answer, 422, "validation_error")) == {"is_active": "type"}


@pytest.mark.parametrize(
    "query",
    [
        "limit=5&limit=6",
        "limit=5&limit=5",
        "limit=5&%6Cimit=5",
        "email=a@b.co&email=c@d.co",
        "page=1&page=",
    ],
)
def test_a_parameter_that_stands_twice_is_refused(door: Door, query: str) -> None:
    answer = door.ask("GET", f"/v2/customers?{query}")
    assert list(fields(refused(answer, 422, "validation_error")).values()) == ["duplicate"]


def test_an_unknown_parameter_is_ignored_and_named_in_a_header(door: Door) -> None:
    answer = door.ask("GET", "/v2/customers?limit=1&colour=red&size=2")
    assert answer.status == 200
    assert (
        answer.header("x-sandbox-warnings")
        == "unknown_query_parameter:colour, unknown_query_parameter:size"
    )


@pytest.mark.parametrize(
    "name",
    ["a%0D%0AX-Evil:1", "a%0AX-Evil:1", "%00", "%E2%82%AC", "a,b", "x" * 5_000, "%FF", "a%22b", ""],
)
def test_an_unknown_parameter_cannot_write_headers(door: Door, name: str) -> None:
    answer = door.ask("GET", f"/v2/customers?{name}=1")
    assert (200, None) == (answer.status, answer.header("x-evil"))
    assert len(answer.header("x-sandbox-warnings") or "") < 100


@pytest.mark.parametrize(
    "control",
    ["POST /reset?scenario=empty", "DELETE /inbox?nam=erp", "POST /webhooks/drain?held=true"],
)
def test_a_control_that_changes_something_refuses_a_query_that_it_does_not_know(
    door: Door, control: str
) -> None:
    """It would change more than is meant: the members of a reset belong into its body."""
    method, path = control.split()
    refusal = refused(door.ask(method, f"/_sandbox{path}"), 422, "validation_error")
    assert [("query", "unknown_parameter")] == [
        (each["in"], each["code"]) for each in refusal["details"]
    ]
