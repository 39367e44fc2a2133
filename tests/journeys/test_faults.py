"""Failure on demand: rules of a sandbox, and headers of one request."""

import json
import re
from time import monotonic
from typing import Any

import httpx2
import pytest

from stub_server.contract.document import Operation
from stub_server.contract.source import fixture
from stub_server.engine.fault_rules import Faults, looking
from stub_server.testing import Sandbox

from ..conftest import Serve
from ..support import make
from ..support.contract import document
from ..support.live import NO_TLS
from ..support.make import Json, created, customer_body, done
from .steps import UNKNOWN, refused


def new_rule(sandbox: Sandbox, then: Json | None = None, **rest: Any) -> Json:
    """A new fault rule."""
    body = rest if then is None else {"then": then, **rest}
    return dict(created(sandbox.control.post("/faults", json=body))["fault"])


def hits(sandbox: Sandbox, rule: Json) -> tuple[int, int]:
    """How many requests a rule meant, and on how many of them it acted."""
    listed = done(sandbox.control.get("/faults", params={"limit": 100}))["faults"]
    now = next(each for each in listed if each["id"] == rule["id"])
    return now["seen"], now["hits"]


def statuses(sandbox: Sandbox, count: int, path: str = "/v2/customers") -> list[int]:
    """The statuses of so many requests one after the other."""
    return [sandbox.api.get(path).status_code for _ in range(count)]


# -- what a rule does


def test_a_rule_answers_in_the_one_error_shape_and_says_so(sandbox: Sandbox) -> None:
    """Status, code, message and headers are those of the rule; other operations are left alone."""
    then = {
        "status": 503,
        "code": "simulated_fault",
        "message": "Busy.",
        "headers": {"Retry-After": "2"},
    }
    rule = new_rule(sandbox, then, match={"operationId": "listCustomers"})
    answer = sandbox.api.get("/v2/customers")
    refused(answer, 503, "simulated_fault")
    assert "Busy." == answer.json()["message"]
    assert f"fault:{rule['id']}" == answer.headers["X-Sandbox-Simulated"]
    assert "2" == answer.headers["Retry-After"]
    assert [200] == statuses(sandbox, 1, "/v2/plans")
    assert (1, 1) == hits(sandbox, rule)


def test_a_rule_acts_before_the_credential_is_looked_at(sandbox: Sandbox) -> None:
    """An outage asks nobody for a key."""
    new_rule(sandbox, {"status": 503})
    refused(
        httpx2.get(f"{sandbox.url}/v2/customers", verify=NO_TLS),
        503,
        "simulated_fault",
    )


def test_the_control_surface_never_fails(sandbox: Sandbox) -> None:
    """A rule for everything means every request to the API."""
    rule = new_rule(sandbox, {"status": 500})
    done(sandbox.control.get("/clock"))
    assert (0, 0) == hits(sandbox, rule)
    assert 204 == sandbox.control.delete("/faults").status_code
    assert [200] == statuses(sandbox, 1)


def test_an_answer_may_come_as_ever_and_say_what_was_done_to_it(sandbox: Sandbox) -> None:
    """A header is added; the answer is the real one."""
    rule = new_rule(sandbox, {"headers": {"X-Team": "blue"}})
    answer = sandbox.api.get("/v2/customers")
    assert f"fault:{rule['id']}" == answer.headers["X-Sandbox-Simulated"]
    assert "blue" == answer.headers["X-Team"]
    assert answer.json()["customers"]


def order_body(sandbox: Sandbox, **changes: Any) -> Json:
    """What createPixOrder accepts."""
    plan = make.make_plan(sandbox.api, billing_type="one_time")
    return make.order_body(plan["projectId"], plan["id"], **changes)


def lost(sandbox: Sandbox, **options: Any) -> Json:
    """An order whose answer does not arrive; the body that was sent."""
    body = order_body(sandbox)
    with pytest.raises(httpx2.TransportError):
        sandbox.api.post("/v2/orders/pix", json=body, **options)
    return body


@pytest.mark.parametrize("body", [{}, {"body": {"$.projectId": "*"}}], ids=["any", "by its body"])
@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_a_connection_is_dropped_before_or_after_the_change(
    sandbox: Sandbox, when: str, made: int, body: Json
) -> None:
    """The client cannot tell the two apart, and only one of them has made the order."""
    before = done(sandbox.api.get("/v2/orders", params={"limit": 1}))["pagination"]["total"]
    new_rule(sandbox, {"drop_connection": when}, match={"operationId": "createPixOrder"} | body)
    lost(sandbox)
    assert (
        made
        == done(sandbox.api.get("/v2/orders", params={"limit": 1}))["pagination"]["total"] - before
    )


def test_a_body_is_cut(sandbox: Sandbox) -> None:
    """It says how long it would have been, and the connection ends before."""
    new_rule(sandbox, {"truncate_body": 0.5})
    with pytest.raises(httpx2.RemoteProtocolError):
        sandbox.api.get("/v2/customers")


@pytest.mark.parametrize(
    "then", [{"corrupt_json": True}, {"corrupt_json": True, "status": 500}], ids=str
)
def test_a_body_is_no_json(sandbox: Sandbox, then: Json) -> None:
    """Of the length that it says, so that only its reader notices."""
    new_rule(sandbox, then)
    answer = sandbox.api.get("/v2/customers")
    assert then.get("status", 200) == answer.status_code
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    with pytest.raises(json.JSONDecodeError):
        answer.json()


# -- which requests it means


@pytest.mark.parametrize(
    ("match", "meant"),
    [
        ({}, True),
        ({"operationId": "createCustomer"}, True),
        ({"operationId": "listCustomers"}, False),
        ({"method": "POST", "path": "/v2/cust*"}, True),
        ({"path": "/v2/customer?"}, True),
        ({"path": "/v2/[c]ustomers"}, False),
        ({"header": {"x-team": "bl*"}}, True),
        ({"header": {"X-Team": "red"}}, False),
        ({"body": {"$.email": "*@example.com"}}, True),
        ({"body": {"$.email": "*@example.org"}}, False),
        ({"body": {"$.metadata.vip": "yes", "$.name": "Marina*"}}, True),
        ({"body": {"$.metadata[*]": "*"}}, False),
        ({"method": "PUT", "body": {"$.email": "*"}}, False),
    ],
    ids=str,
)
def test_a_rule_means_what_all_its_members_name(sandbox: Sandbox, match: Json, meant: bool) -> None:
    """Globs of `*` and `?`; a bracket is a bracket."""
    rule = new_rule(sandbox, {"status": 500}, match=match)
    metadata = {"vip": "yes", "0": "no item", "*": "no item either"}
    body = customer_body(name="Marina Duarte", email="marina@example.com", metadata=metadata)
    answer = sandbox.api.post("/v2/customers", json=body, headers={"X-Team": "blue"})
    assert (500 if meant else 201) == answer.status_code
    assert (meant, meant) == hits(sandbox, rule)


# -- when it acts


@pytest.mark.parametrize(
    ("when", "acts"),
    [
        ({}, [1, 1, 1, 1, 1, 1]),
        ({"every": 3}, [0, 0, 1, 0, 0, 1]),
        ({"after": 2}, [0, 0, 1, 1, 1, 1]),
        ({"times": 2}, [1, 1, 0, 0, 0, 0]),
        ({"after": 1, "every": 2, "times": 1}, [0, 0, 1, 0, 0, 0]),
        ({"probability": 0}, [0, 0, 0, 0, 0, 0]),
        ({"probability": 1}, [1, 1, 1, 1, 1, 1]),
    ],
    ids=str,
)
def test_a_rule_acts_on_some_of_the_requests(sandbox: Sandbox, when: Json, acts: list[int]) -> None:
    """All conditions must hold."""
    new_rule(sandbox, {"status": 500}, when=when)
    assert [500 if act else 200 for act in acts] == statuses(sandbox, 6)


# -- the life of a rule


@pytest.mark.parametrize("preset", sorted(fixture("fault-presets.yaml")))
def test_a_preset_is_a_whole_rule(sandbox: Sandbox, preset: str) -> None:
    """What is given beside it takes the place of its own."""
    rule = new_rule(
        sandbox,
        preset=preset,
        when={"times": 1, "after": 1},
        match={"path": "/v2/plans"},
        name="mine",
    )
    assert (preset, "mine", {"times": 1, "after": 1}) == (
        rule["preset"],
        rule["name"],
        rule["when"],
    )
    assert fixture("fault-presets.yaml")[preset]["then"] == rule["then"]
    assert 200 == sandbox.api.get("/v2/plans").status_code
    if "drop_connection" in rule["then"]:
        with pytest.raises(httpx2.TransportError):
            sandbox.api.get("/v2/plans")
    else:
        answer = sandbox.api.get("/v2/plans")
        assert rule["then"].get("status", 200) == answer.status_code
        assert f"fault:{rule['id']}" == answer.headers["X-Sandbox-Simulated"]
    assert (2, 1) == hits(sandbox, rule)


def test_a_rule_is_listed_switched_and_deleted(sandbox: Sandbox) -> None:
    """Newest first; a rule that is off neither acts nor counts."""
    first = new_rule(sandbox, {"status": 500})
    second = new_rule(sandbox, {"status": 502}, name="second")
    page = done(sandbox.control.get("/faults", params={"limit": 1}))
    assert ([second], 2) == (page["faults"], page["pagination"]["total"])
    off = done(sandbox.control.patch(f"/faults/{first['id']}", json={"enabled": False}))["fault"]
    assert first | {"enabled": False} == off
    assert [502] == statuses(sandbox, 1)
    assert (0, 0) == hits(sandbox, first)
    assert 204 == sandbox.control.delete(f"/faults/{second['id']}").status_code
    assert [200] == statuses(sandbox, 1)
    refused(sandbox.control.delete(f"/faults/{second['id']}"), 404, "not_found")
    refused(sandbox.control.patch("/faults/fault_99", json={"enabled": True}), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({}, "then", "preset"),
        ({"then": {"delay_ms": {"min": 2, "max": 1}}}, "then.delay_ms", "then.delay_ms"),
        ({"then": {"status": 500, "delay": "after"}}, "then.delay", "delay_ms"),
        (
            {"then": {"status": 500}, "match": {"body": {"customer.email": "*"}}},
            "match.body",
            "$.customer.email",
        ),
        (
            {"then": {"headers": {"Content-Length": "3"}}},
            "then.headers.Content-Length",
            "Content-Length",
        ),
        ({"then": {"headers": {"X Team": "a"}}}, "then.headers.X Team", "X Team"),
        # nginx would send a file of its own; a browser would report requests to other pages
        *(
            ({"then": {"headers": {name: "/private"}}}, f"then.headers.{name}", name)
            for name in ("X-Accel-Redirect", "x-sendfile", "NEL")
        ),
    ],
    ids=str,
)
def test_a_rule_that_contradicts_itself_is_409(
    sandbox: Sandbox, body: Json, field: str, says: str
) -> None:
    """The schema has each of its members; nothing is made."""
    answer = sandbox.control.post("/faults", json=body)
    assert {field: "fault_conflict"} == refused(answer, 409, "fault_conflict")
    assert says in answer.json()["message"]
    assert [] == done(sandbox.control.get("/faults"))["faults"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"then": {}}, "then"),
        (
            {"then": {"status": 500}, "match": {"operationId": "listEverything"}},
            "match.operationId",
        ),
        (
            {"then": {"delay_ms": 60_001}},
            "then.delay_ms: 60001 is greater than the maximum of 60000.",
        ),
        ({"then": {"delay_ms": {"min": 1}}}, "then.delay_ms.max: This field is required."),
        ({"then": {"drop_connection": "before", "status": 503}}, "Leave one of them out"),
        ({"then": {"headers": {"X-Team": "a\r\nSet-Cookie: b"}}}, "then.headers"),
    ],
    ids=str,
)
def test_a_rule_that_cannot_be_meant_is_refused(sandbox: Sandbox, body: Json, says: str) -> None:
    """With what to write instead; nothing is made."""
    answer = sandbox.control.post("/faults", json=body)
    refused(answer, 422, "validation_error")
    assert says in answer.json()["message"]
    assert 0 == done(sandbox.control.get("/faults"))["pagination"]["total"]


# -- one request


@pytest.mark.parametrize(
    ("headers", "status", "code", "label"),
    [
        ({"Prefer": "code=503"}, 503, "simulated_fault", "prefer"),
        ({"Prefer": 'return=minimal, code="429"'}, 429, "rate_limited", "prefer"),
        ([("Prefer", "code=503"), ("Prefer", "wait=5")], 503, "simulated_fault", "prefer"),
        ({"Prefer": "code=409"}, 409, None, "prefer"),
        ({"X-Sandbox-Simulate": "plan_sold_out"}, 409, "plan_sold_out", "simulate"),
        ({"X-Sandbox-Simulate": "internal_error"}, 500, "internal_error", "simulate"),
        (
            {"X-Sandbox-Simulate": "plan_sold_out", "X-Sandbox-Delay": "5"},
            409,
            "plan_sold_out",
            "delay, simulate",
        ),
    ],
    ids=str,
)
def test_one_request_fails_as_it_asks(
    sandbox: Sandbox,
    headers: dict[str, str] | list[tuple[str, str]],
    status: int,
    code: str | None,
    label: str,
) -> None:
    """No rule is needed, and the next request is answered as ever."""
    body = order_body(sandbox)
    answer = sandbox.api.post("/v2/orders/pix", json=body, headers=headers)
    assert (status, label) == (answer.status_code, answer.headers["X-Sandbox-Simulated"])
    assert code in (None, answer.json()["code"])
    assert 201 == sandbox.api.post("/v2/orders/pix", json=body).status_code


INVALID = [op for op in document("openapi.yaml").operations.values() if 422 in op.responses]


@pytest.mark.parametrize("operation", INVALID, ids=lambda operation: operation.id)
def test_a_simulated_violation_is_one_of_that_operation(
    sandbox: Sandbox, operation: Operation
) -> None:
    """What is refused is a parameter that the operation has, or a member of its body."""
    contract = document("openapi.yaml")
    path = re.sub(r"\{[^}]+\}", UNKNOWN, operation.path)
    answer = sandbox.api.request(operation.method, path, headers={"Prefer": "code=422"})
    refused(answer, 422, "validation_error")
    details = answer.json()["details"]
    assert details
    named = {(parameter.place, parameter.name) for parameter in operation.parameters}
    for entry in details:
        steps = [
            int(step) if step.isdigit() else step
            for step in re.findall(r"[^.\[\]]+", entry["field"])
        ]
        is_member = entry["in"] == "body" and contract.schema_at(operation.body or {}, steps)
        assert is_member or (entry["in"], entry["field"]) in named, entry


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"Prefer": "code=418"}, "200, 401, 403, 408, 422, 429, 500, 502, 503, 504"),
        ({"Prefer": "code=" + "9" * 5_000}, "200, 401"),
        ({"X-Sandbox-Simulate": "plan_sold_out"}, "rate_limited"),
        ({"X-Sandbox-Simulate": ""}, "rate_limited"),
        ({"X-Sandbox-Delay": "soon"}, "milliseconds"),
        ({"X-Sandbox-Delay": "60001"}, "60000"),
        ({"X-Sandbox-Delay": "800; afterwards"}, "800; after"),
    ],
    ids=str,
)
def test_a_wish_that_cannot_be_meant_is_refused_with_what_can(
    sandbox: Sandbox, headers: dict[str, str], says: str
) -> None:
    """400, and the operation is not reached."""
    answer = sandbox.api.get("/v2/customers", headers=headers)
    refused(answer, 400, "malformed_request")
    assert says in answer.json()["message"]
    assert [(next(iter(headers)), "header")] == [
        (wrong["field"], wrong["in"]) for wrong in answer.json()["details"]
    ]


@pytest.mark.parametrize(
    ("header", "value", "warning"),
    [
        (
            "X-Sandbox-Simulat",
            "plan_sold_out",
            "unknown_sandbox_header:x-sandbox-simulat;nearest=x-sandbox-simulate",
        ),
        ("X-Sandbox-Colour", "blue", "unknown_sandbox_header:x-sandbox-colour"),
        ("If-Match", '"1"', "if_match_ignored"),
        ("Prefer", "cod=409", "unknown_preference:cod;nearest=code"),
        (
            "Prefer",
            "respond-async, wait=5",
            "unknown_preference:respond-async, unknown_preference:wait",
        ),
    ],
)
def test_a_misspelt_header_is_warned_of_with_the_one_that_was_meant(
    sandbox: Sandbox, header: str, value: str, warning: str
) -> None:
    for path, status in (("/v2/plans", 200), ("/v2/plans/none", 404)):
        answer = sandbox.api.get(path, headers={header: value})
        assert (status, warning) == (answer.status_code, answer.headers["X-Sandbox-Warnings"])


# -- what must not be made of it


def test_a_stranger_does_not_make_a_public_server_wait(serve: Serve) -> None:
    """There it waits for callers that it has admitted; the others are refused at once."""
    # the test itself listens on loopback
    server = serve(host="0.0.0.0", admin_key="key")  # noqa: S104 - a setting: it listens on loopback
    url = f"http://127.0.0.1:{server.port}"
    answer = httpx2.get(
        f"{url}/v2/customers", headers={"X-Sandbox-Delay": "60000"}, timeout=20, verify=NO_TLS
    )
    assert (401, False) == (answer.status_code, "X-Sandbox-Simulated" in answer.headers)
    key = httpx2.get(
        f"{url}/_sandbox/credentials", headers={"X-Sandbox-Admin-Key": "key"}, verify=NO_TLS
    ).json()
    headers = {"X-Sandbox-Delay": "5", "Authorization": f"Bearer {key['private_key']}"}
    answer = httpx2.get(f"{url}/v2/customers", headers=headers, verify=NO_TLS)
    assert (200, "delay") == (answer.status_code, answer.headers["X-Sandbox-Simulated"])


def test_a_slow_answer_comes_late_and_whole(sandbox: Sandbox) -> None:
    body = order_body(sandbox)
    began = monotonic()
    answer = sandbox.api.post("/v2/orders/pix", json=body, headers={"X-Sandbox-Delay": "300;after"})
    assert (201, "delay") == (answer.status_code, answer.headers["X-Sandbox-Simulated"])
    assert 0.3 <= monotonic() - began


def test_an_answer_with_headers_of_a_rule_runs_nothing_in_a_browser(sandbox: Sandbox) -> None:
    """Its type may be wrong, as a test wants it, but it is of the same origin as the console."""
    page = {
        "status": 400,
        "message": "<script>1</script>",
        "headers": {"content-type": "text/html"},
    }
    new_rule(sandbox, page)
    answer = sandbox.api.get("/v2/plans")
    assert "text/html" == answer.headers["content-type"]
    assert "sandbox; default-src 'none'" == answer.headers["content-security-policy"]
    assert "nosniff" == answer.headers["x-content-type-options"]


def test_long_texts_with_wildcards_are_few(sandbox: Sandbox) -> None:
    """Two thousand of them held everybody up for two seconds at the first request, and a hundred
    rules with the same twenty for a second at each.
    """
    header = {f"x-{number}": "*a" * 50 for number in range(20)}
    new_rule(sandbox, {"status": 503}, match={"header": header})
    other = {"then": {"status": 503}, "match": {"body": {"$.items[*].description": "*ab"}}}
    refused(sandbox.control.post("/faults", json=other), 409, "too_many_faults")
    new_rule(sandbox, {"status": 503}, match={"header": {"x-0": "a" * 200}})
    new_rule(sandbox, {"status": 503}, match={"body": {"$.description": "*" + "a" * 47}})
    assert [200] == statuses(sandbox, 1)


def test_the_body_of_a_delivery_is_parsed_once_for_all_rules() -> None:
    rules = Faults(1)
    read = list[str]()
    match = {"event": "*", "body": {"$.data": "*", "$.data.items[*]": 100}}
    for _ in range(3):
        rules.add({"match": match, "then": {"webhook_drop": True}}, 0)

    def payload() -> Json:
        read.append("")
        return {"data": {"items": [*range(200)]}}

    look = looking(payload)
    texts = {"event": "order.paid"}
    for rule in rules.rules.values():
        assert not rule.fits(texts, {}, look)  # the hundred-and-first item
    assert [""] == read
    assert [*range(100)] == look(("data", "items", "*"))
