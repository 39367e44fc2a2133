"""The journal as its readers have it: lists, one request, HAR, and what was expected."""

from typing import Any

import httpx2
import orjson
import pytest
from haralyzer import HarEntry, HarParser

from stub_server.contract.secrets import REDACTED
from stub_server.core.clock import parse_iso, wall_ms
from stub_server.testing import Sandbox

from ..support.explained import pasted
from ..support.live import NO_TLS, NOW, Live
from ..support.make import Json, customer_body, done
from .steps import refused


def kept(sandbox: Sandbox, answer: httpx2.Response) -> Json:
    """The request of an answer, whole."""
    ident = answer.headers["X-Request-Id"]
    return dict(done(sandbox.control.get(f"/requests/{ident}"))["request"])


def verify(sandbox: Sandbox, status: int = 200, **body: Any) -> Json:
    """The report about what is expected."""
    answer = sandbox.control.post("/requests/verify", json=body)
    assert status == answer.status_code, answer.text
    return dict(answer.json())


def new_customer(sandbox: Sandbox, **body: Any) -> httpx2.Response:
    """A new customer."""
    return sandbox.api.post("/v2/customers", json=customer_body(**body))


# -- the list


@pytest.mark.check
def test_a_row_tells_who_asked_what_and_what_became_of_it(
    live: Live, sandbox: Sandbox, credentials: Json
) -> None:
    sandbox.api.headers["Authorization"] = f"Bearer {credentials['private_key']}"
    answer = new_customer(sandbox)
    inside = live.app.sandboxes.entry(sandbox.name).sandbox
    (row,) = sandbox.requests()
    duration = row.pop("duration_us")
    received = row.pop("received_at")
    assert 0 <= wall_ms() - parse_iso(received) < 60_000  # the sandbox's clock shows another year
    assert received == kept(sandbox, answer)["received_at"]
    key = row["caller"].pop("key_id")
    assert 0 < duration < 10_000_000
    assert {
        "id": answer.headers["X-Request-Id"],
        "at": NOW,
        "method": "POST",
        "path": "/v2/customers",
        "query": "",
        "operationId": "createCustomer",
        "status": 201,
        "code": None,
        "caller": {
            "kind": "private_key",
            "subject": row["caller"]["subject"],
            "merchant_id": credentials["merchant"]["id"],
            "claims": None,
            "admitted": True,
        },
        "step": inside.log.number,
        "simulated": None,
        "warnings": [],
        "by_command": False,
    } == row
    assert inside.store.api_keys.find(key) is not None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"operationId": "listPlans"}, ["/v2/plans"]),
        ({"method": "POST"}, ["/v2/customers"]),
        ({"path": "/v2/*"}, ["/v2/plans", "/v2/customers", "/v2/nowhere"]),
        ({"path": "/v2/plan?"}, ["/v2/plans"]),
        ({"status": "404"}, ["/v2/nowhere"]),
        ({"status": "4xx"}, ["/v2/customers", "/v2/nowhere", "/api-keys/info"]),
        ({"status": "2xx"}, ["/v2/plans"]),
        ({"code": "validation_error"}, ["/v2/customers"]),
        ({"caller": "jwt"}, ["/v2/plans", "/v2/customers"]),
        ({"caller": "nobody"}, []),
        ({"contains": "Ana of the journal"}, ["/v2/customers"]),
        ({"contains": "note=7"}, ["/v2/plans"]),
    ],
)
def test_each_filter_means_its_requests(sandbox: Sandbox, query: Json, expected: list[str]) -> None:
    sandbox.api.get("/v2/plans?note=7")
    sandbox.api.post("/v2/customers", json={"name": "Ana of the journal"})
    sandbox.api.get("/v2/nowhere")
    httpx2.get(f"{sandbox.url}/api-keys/info", verify=NO_TLS)
    assert expected == [found["path"] for found in reversed(sandbox.requests(**query))]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"operationId": "listNothing"}, "operationId"), ({"method": "GETS"}, "method"), ({"status": "40"}, "status"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/requests", "/requests.har"])
def test_a_query_that_cannot_be_meant_is_refused(
    sandbox: Sandbox, path: str, query: Json, field: str
) -> None:
    if path == "/requests.har" and field == "limit":
        return
    answer = sandbox.control.get(path, params=query)
    refused(answer, 422, "validation_error")
    assert [field] == [detail["field"] for detail in answer.json()["details"]]


# -- one request


def test_one_request_is_shown_whole(sandbox: Sandbox) -> None:
    body = customer_body()
    answer = sandbox.api.post("/v2/customers?x=1", json=body, headers={"X-Team": "blue"})
    shown = kept(sandbox, answer)
    assert (body, answer.json()) == (shown["request"]["body"], shown["response"]["body"])
    assert ("blue", REDACTED) == (
        shown["request"]["headers"]["x-team"], shown["request"]["headers"]["authorization"]
    )  # fmt: skip
    assert answer.headers["content-type"] == shown["response"]["headers"]["content-type"]
    assert [(name, "passed") for name in ("route", "auth", "validate", "rule", "respond")] == [
        (stage["step"], stage["outcome"]) for stage in shown["trace"]
    ]
    spent = sum(stage["us"] for stage in shown["trace"])
    assert shown["duration_us"] - 5 <= spent <= shown["duration_us"]  # each is rounded down
    assert ["unknown_query_parameter:x"] == shown["warnings"]
    (event,) = done(
        sandbox.control.get("/events", params={"type": "customer.created", "limit": 1})
    )["events"]
    assert ([event["id"]], shown["step"] - 1, None) == (
        shown["events"],
        shown["step_before"],
        shown["explanation"],
    )


def test_the_journal_has_all_headers_that_were_sent(sandbox: Sandbox) -> None:
    """Also those that it does not keep with the others, since it has what they say besides."""
    api = sandbox.api
    past = {"X-Sandbox-As-Of": sandbox.control.get("/clock").json()["now"]}
    sandbox.control.post("/clock/advance", json={"days": 1})
    answers = [
        api.get("/v2/customers"),
        api.get("/v2/customers?pag=1"),
        api.get("/v2/customers", headers=past),
        sandbox.control.post("/clock/advance", json={"days": 1}),
    ]
    for answer in answers:
        sent = {name.lower(): value for name, value in answer.headers.items()}
        assert kept(sandbox, answer)["response"]["headers"] == {
            name: value for name, value in sent.items() if name not in ("date", "server")
        }


def test_curl_sends_the_request_again_as_pasted(sandbox: Sandbox, tmp_path: Any) -> None:
    """With the ready token instead of the credential that was sent, or that was not."""
    body = customer_body() | {"name": 'D\'Ávila & "Filhos" $HOME `x` @'}
    made = kept(sandbox, sandbox.api.post("/v2/customers", json=body, headers={"X-Team": "a'b"}))
    read = kept(sandbox, sandbox.api.get("/v2/plans?limit=2&x=%27"))
    stranger = kept(sandbox, httpx2.get(f"{sandbox.url}/v2/plans", verify=NO_TLS))
    head = kept(sandbox, sandbox.api.head("/v2/plans"))
    assert [[409], [200], [200], [200]] == [
        pasted(each["curl"], tmp_path) for each in (made, read, stranger, head)
    ]
    again = sandbox.requests(operationId="createCustomer")[0]
    sent = done(sandbox.control.get(f"/requests/{again['id']}"))["request"]["request"]
    assert (body, "a'b") == (sent["body"], sent["headers"]["x-team"])


# -- HAR


def test_har_has_the_same_requests_oldest_first(sandbox: Sandbox) -> None:
    sandbox.api.get("/v2/plans?limit=1&x=a%20b")
    new_customer(sandbox)
    answer = sandbox.control.get("/requests.har", params={"path": "/v2/*"})
    assert "application/har+json" == answer.headers["content-type"]
    found = answer.json()["log"]
    read, wrote = found["entries"]
    assert f"{sandbox.url}/v2/plans?limit=1&x=a%20b" == read["request"]["url"]
    assert [{"name": "limit", "value": "1"}, {"name": "x", "value": "a b"}] == read["request"][
        "queryString"
    ]
    assert (201, "Created") == (wrote["response"]["status"], wrote["response"]["statusText"])
    parsed = HarParser(answer.json())
    entries = [HarEntry(entry) for entry in parsed.har_data["entries"]]
    assert ("1.2", "stub-server") == (parsed.version, parsed.creator["name"])
    assert [(200, "GET", "application/json"), (201, "POST", "application/json")] == [
        (entry.response.status, entry.request.method, entry.response.mimeType) for entry in entries
    ]
    assert entries[0].startTime <= entries[1].startTime
    assert orjson.loads(entries[1].request.text) == orjson.loads(
        wrote["request"]["postData"]["text"]
    )
    assert wrote["response"]["content"]["size"] == len(
        wrote["response"]["content"]["text"].encode()
    )
    assert sandbox.token not in answer.text


# -- what was expected


def test_what_is_expected_and_happened_holds(sandbox: Sandbox) -> None:
    ids = [new_customer(sandbox).headers["X-Request-Id"] for _ in range(2)]
    sandbox.api.get("/v2/plans?limit=5", headers={"X-Team": "blue"})
    wanted = {"operationId": "createCustomer", "body": {"email": "*@*"}}
    report = verify(sandbox, request=wanted, response={"status": 201}, times={"exactly": 2})
    assert {
        "ok": True,
        "code": None,
        "matched": 2,
        "expected": {"exactly": 2},
        "requests": ids[::-1],
        "nearest": [],
        "unknown": [],
        "warnings": [],
    } == (report)
    for body in (
        {"request": {"operationId": "create*"}},
        {"request": {"method": "P?ST"}, "times": {"at_least": 2}},
        {"request": {"method": "post"}, "times": {"at_least": 2}},
        {
            "request": {"path": "/v2/plans", "query": {"limit": "5"}, "header": {"x-TEAM": "bl*"}},
            "times": {"exactly": 1},
        },
        {"response": {"status": "2xx"}, "times": {"at_least": 3}},
        {"response": {"body": {"customer": {"email": "*"}}}, "times": {"exactly": 2}},
        {"response": {"code": "*"}, "times": {"at_most": 0}},
        {"request": {"path": "/_sandbox/*"}, "times": {"at_least": 0}},
        {"since": "2026-11-20T14:32:05.124Z", "times": {"exactly": 0}},
    ):
        assert verify(sandbox, **body)["ok"], body


@pytest.mark.parametrize(
    ("request_", "warnings"),
    [
        ({"path": "/v2/order/pix"}, "unknown_path"),
        ({"path": "/s/alice/v2/orders"}, "unknown_path"),
        ({"path": "/v2/orders/"}, "unknown_path"),
        ({"path": "/v2/ordrs*"}, "unknown_path"),
        ({"method": "TRACE"}, "unknown_method"),
        ({"method": "put", "path": "/v2/orders"}, "unknown_method"),
        ({"body": {"$.customer.email": "a@b.co"}}, "path_as_name"),
        ({"operationId": "create*"}, None),
        ({"path": "/v2/orders/*", "method": "HEAD"}, None),
        ({"path": "/v2/orders/0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55"}, None),
        ({"path": "/v2/project?/*/stats"}, None),
        ({"path": "/api-keys/merchant/pk_*"}, None),
        ({"path": "/_sandbox/sandboxes/*/fork"}, None),
    ],
    ids=str,
)
def test_what_no_request_can_have_is_warned_of(
    sandbox: Sandbox, request_: Json, warnings: str | None
) -> None:
    """A slip in a path, a method or a body, with which "never" would hold for ever."""
    for times, status in (({"at_most": 0}, 200), ({"at_least": 1}, 409)):
        answer = sandbox.control.post(
            "/requests/verify", json={"request": request_, "times": times}
        )
        assert (status, warnings) == (answer.status_code, answer.headers.get("x-sandbox-warnings"))
        assert (warnings.split(", ") if warnings else []) == answer.json()["warnings"]


def test_what_is_expected_and_did_not_happen_is_409_with_the_nearest_misses(
    sandbox: Sandbox,
) -> None:
    answers = [new_customer(sandbox) for _ in range(4)]
    sandbox.api.get("/v2/plans")
    report = verify(
        sandbox,
        409,
        request={
            "operationId": "createCustomer",
            "body": {"email": "ana@example.net", "metadata": {"a": 1}},
        },
    )
    assert (False, "verification_failed", 0, {"at_least": 1}, []) == tuple(
        report[name] for name in ("ok", "code", "matched", "expected", "requests")
    )
    assert [answer.headers["X-Request-Id"] for answer in answers[:0:-1]] == [
        miss["id"] for miss in report["nearest"]
    ]
    email, metadata = report["nearest"][0]["differences"]
    sent = orjson.loads(answers[-1].request.content)
    assert {
        "where": "request.body.email",
        "expected": "ana@example.net",
        "actual": sent["email"],
    } == email
    assert ("request.body.metadata", {"a": 1}) == (metadata["where"], metadata["expected"])


@pytest.mark.parametrize(
    ("expected", "actual", "holds"),
    [
        ({"a": [1, {"b": "x*"}]}, {"a": [1, {"b": "xy", "c": 0}], "d": 0}, True), ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": "1"}, {"a": 1}, False), ({"a": True}, {"a": 1}, False), ({"a": 1}, {"a": 1.0}, True),
        ({"a": None}, {}, False), ({"a": None}, {"a": None}, True), ({}, {"a": 1}, True), ({"a": {}}, {"a": 1}, False),
        ({"a": "[x]?"}, {"a": "[x]y"}, True), ({"a": "[x]"}, {"a": "x"}, False),
    ],
)  # fmt: skip
def test_objects_match_as_subsets_and_texts_as_globs(
    sandbox: Sandbox, expected: Json, actual: Json, holds: bool
) -> None:
    sandbox.api.post("/v2/customers", json=actual)
    verify(sandbox, 200 if holds else 409, request={"body": expected})


def test_many_different_globs_are_not_compiled(sandbox: Sandbox) -> None:
    """Nine hundred of them held everybody up for a second and a half. One glob often is one."""
    many = {f"m{number}": "*a" * 5 + str(number) for number in range(180)}
    refused(
        sandbox.control.post("/requests/verify", json={"request": {"body": many}}),
        422,
        "validation_error",
    )
    verify(sandbox, 409, request={"body": {f"m{number}": "*" for number in range(900)}})
    same = {f"m{number}": f"*{'a' * 98}{'?' * 98}b*" for number in range(90)}
    refused(
        sandbox.control.post("/requests/verify", json={"request": {"body": same}}),
        422,
        "validation_error",
    )
