"""Query parameters: strictly spelled, once each; what the contract does not know is ignored and said so."""

import pytest

from ..support.refusal import fields, refused, says
from ..support.wire import Door


@pytest.mark.parametrize("text", ["1", "100", "%31%30", "1&", "&limit=7"])
def test_an_integer_is_digits(door: Door, text: str) -> None:
    assert (
        door.ask("GET", f"/v2/customers?limit={text}" if "limit" not in text else f"/v2/customers?{text}").status == 200
    )


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


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "min"),
        ("limit=101", "max"),
        ("page=0", "min"),
        ("page=-1", "min"),
        ("limit=-5", "min"),
        ("limit=" + "9" * 20, "max"),
        ("limit=" + "9" * 4_000, "max"),
    ],
)
def test_an_integer_out_of_range_is_refused(door: Door, query: str, code: str) -> None:
    answer = door.ask("GET", f"/v2/customers?{query}")
    assert fields(refused(answer, 422, "validation_error")) == {query.partition("=")[0]: code}


@pytest.mark.parametrize(
    ("query", "shown", "bound"),
    [
        ("limit=" + "9" * 20, "9" * 20, 100),
        ("page=-" + "9" * 20, "-" + "9" * 20, 1),
        ("limit=%31" + "0" * 18, "1" + "0" * 18, 100),
        ("limit=" + "9" * 4_000, "9" * 80 + "…", 100),
    ],
)
def test_a_huge_integer_is_repeated_as_it_was_sent(door: Door, query: str, shown: str, bound: int) -> None:
    """Cut where it is long. It was told as 10^18, which nobody had sent."""
    (detail,) = refused(door.ask("GET", f"/v2/customers?{query}"), 422, "validation_error")["details"]
    assert detail["message"].startswith(f"{shown} ")
    assert says(detail["message"], bound)


@pytest.mark.parametrize("page", [10_000, 2**31, 2**53 - 1])
def test_a_page_past_the_end_is_an_empty_page(door: Door, page: int) -> None:
    answer = door.ask("GET", f"/v2/customers?page={page}")
    assert (200, [], page) == (answer.status, answer.json()["customers"], answer.json()["pagination"]["page"])


@pytest.mark.parametrize("path", ["/v2/customers", "/_sandbox/requests", "/v2/webhooks/logs"])
@pytest.mark.parametrize("page", [2**53, 10**18, 10**20 - 1])
def test_a_page_whose_number_a_client_could_not_read_back_is_refused(door: Door, path: str, page: int) -> None:
    """It was answered with another number than was sent."""
    (detail,) = refused(door.ask("GET", f"{path}?page={page}"), 422, "validation_error")["details"]
    assert "max" == detail["code"]
    assert says(detail["message"], page, 2**53 - 1)


@pytest.mark.parametrize("text", ["true", "false"])
def test_a_boolean_is_true_or_false(door: Door, text: str) -> None:
    assert door.ask("GET", f"/api-keys?is_active={text}").status == 200


@pytest.mark.parametrize(
    "text", ["TRUE", "True", "1", "0", "yes", "on", "", "null", "%20true", "false%0A", "truefalse"]
)
def test_a_boolean_is_nothing_else(door: Door, text: str) -> None:
    answer = door.ask("GET", f"/api-keys?is_active={text}")
    assert fields(refused(answer, 422, "validation_error")) == {"is_active": "type"}


@pytest.mark.parametrize(
    "query", ["limit=5&limit=6", "limit=5&limit=5", "limit=5&%6Cimit=5", "email=a@b.co&email=c@d.co", "page=1&page="]
)
def test_a_parameter_that_stands_twice_is_refused(door: Door, query: str) -> None:
    answer = door.ask("GET", f"/v2/customers?{query}")
    assert list(fields(refused(answer, 422, "validation_error")).values()) == ["duplicate"]


def test_every_wrong_parameter_is_told_at_once(door: Door) -> None:
    answer = door.ask("GET", "/v2/customers?limit=x&page=0&sort=shoe&type=robot&created_since=yesterday")
    body = refused(answer, 422, "validation_error")
    assert fields(body) == {"limit": "type", "page": "min", "sort": "enum", "type": "enum", "created_since": "format"}
    assert {entry["in"] for entry in body["details"]} == {"query"}


def test_an_unknown_parameter_is_ignored_and_named_in_a_header(door: Door) -> None:
    answer = door.ask("GET", "/v2/customers?limit=1&colour=red&size=2")
    assert answer.status == 200
    assert answer.header("x-sandbox-warnings") == "unknown_query_parameter:colour, unknown_query_parameter:size"


@pytest.mark.parametrize(
    "name", ["a%0D%0AX-Evil:1", "a%0AX-Evil:1", "%00", "%E2%82%AC", "a,b", "x" * 5_000, "%FF", "a%22b", ""]
)
def test_an_unknown_parameter_cannot_write_headers(door: Door, name: str) -> None:
    answer = door.ask("GET", f"/v2/customers?{name}=1")
    assert (200, None) == (answer.status, answer.header("x-evil"))
    assert len(answer.header("x-sandbox-warnings") or "") < 100


def test_thousands_of_unknown_parameters_get_a_short_header(door: Door) -> None:
    answer = door.ask("GET", "/v2/customers?" + "&".join(f"x{i}=1" for i in range(1_000)))
    assert answer.status == 200
    assert len(answer.header("x-sandbox-warnings") or "") < 2_000


def test_an_operation_without_parameters_ignores_them_all(door: Door, customer_id: str) -> None:
    answer = door.ask("GET", f"/v2/customers/{customer_id}?limit=abc")
    assert (200, "unknown_query_parameter:limit") == (answer.status, answer.header("x-sandbox-warnings"))


@pytest.mark.parametrize(
    "query",
    ["name=%00", "name=%FF%FE", "name=%", "name=%zz", "=", "&&&", "name", "name=a=b", "?name=a", "name=" + "a" * 5_000],
)
def test_no_query_breaks_the_server(door: Door, query: str) -> None:
    answer = door.ask("GET", f"/v2/customers?{query}")
    if answer.status != 200:
        refused(answer, 422, "validation_error")


def test_a_plus_is_a_blank_and_percent_2b_is_a_plus(door: Door) -> None:
    made = door.send(
        "POST", "/v2/customers", {"name": "Zuleica Soma", "email": "z+soma@example.com", "document": "12ABC34501DE35"}
    )
    assert made.status == 201, made.body
    for query in ("name=zuleica+soma", "name=zuleica%20soma", "email=z%2Bsoma@example.com"):
        assert door.ask("GET", f"/v2/customers?{query}").json()["pagination"]["total"] == 1
    refused(door.ask("GET", "/v2/customers?email=z+soma@example.com"), 422, "validation_error")


@pytest.mark.parametrize(
    "instant",
    ["2026-11-20T14:32:05Z", "2026-11-20T14:32:05.123456789Z", "2026-11-20T11:32:05-03:00", "2026-11-20t14:32:05z"],
)
def test_a_date_time_is_rfc_3339(door: Door, instant: str) -> None:
    assert door.ask("GET", f"/v2/customers?created_since={instant.replace('+', '%2B')}").status == 200


@pytest.mark.parametrize(
    "instant",
    [
        "2026-11-20", "2026-11-20T14:32:05", "2026-11-20%2014:32:05Z", "2026-11-20T14:32Z", "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T22:59:60Z", "2026-11-20T23:59:60-03:00",
        "10000-01-01T00:00:00Z", "20261120T143205Z", "1763649125", "now", "",
        "2026-11-20T14:32:05+00:00",
        "2026-11-20T14:32:05%2B0000", "%D9%A2026-11-20T14:32:05Z", "2026-11-20T14:32:05Z%0A",
    ],
)  # fmt: skip
def test_a_date_time_is_nothing_else(door: Door, instant: str) -> None:
    """An unescaped plus is a blank, and a leap second ends a day of UTC."""
    answer = door.ask("GET", f"/v2/customers?created_since={instant}")
    assert fields(refused(answer, 422, "validation_error")) == {"created_since": "format"}


@pytest.mark.parametrize(
    "text", ["abc", "0b1f6c1e6a0e4f0b9a536a3f3c1c9b55", "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55%0A", ""]
)
def test_a_uuid_is_hyphenated_hexadecimal(door: Door, text: str) -> None:
    answer = door.ask("GET", f"/v2/plans?projectId={text}")
    assert fields(refused(answer, 422, "validation_error")) == {"projectId": "format"}
