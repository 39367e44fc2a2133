"""The journal as its readers have it: lists, one request, HAR, and what was expected."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
import orjson
import pytest
from haralyzer import HarEntry, HarParser

from stub_server.contract.secrets import REDACTED
from stub_server.http import answers
from stub_server.kernel.clock import parse_iso, wall_ms

from ..conftest import Serve
from ..support.explained import pasted
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, customer_body
from .steps import done, refused

NOW = "2027-03-01T12:00:00.000Z"


class World:
    """A world of its own: its API, and its control surface."""

    def __init__(self, live: Live) -> None:
        answer = httpx2.post(f"{live.url}/_sandbox/sandboxes", json={"now": NOW}, verify=NO_TLS, timeout=30)
        made = created(answer)["sandbox"]
        self.live, self.name, self.credentials = live, made["name"], made["credentials"]
        headers = {"Authorization": f"Bearer {self.credentials['private_key']}"}
        self.api = httpx2.Client(base_url=made["base_url"], headers=headers, timeout=30, verify=NO_TLS)
        self.control = httpx2.Client(base_url=f"{made['base_url']}/_sandbox", timeout=30, verify=NO_TLS)

    def close(self) -> None:
        """Let its connections go."""
        self.api.close()
        self.control.close()

    def listed(self, **query: Any) -> list[Json]:
        """The requests that a query means."""
        return list(done(self.control.get("/requests", params=query))["requests"])

    def paths(self, **query: Any) -> list[str]:
        """The paths of these, oldest first."""
        return [request["path"] for request in reversed(self.listed(**query))]

    def kept(self, answer: httpx2.Response) -> Json:
        """The request of an answer, whole."""
        return dict(done(self.control.get(f"/requests/{answer.headers['X-Request-Id']}"))["request"])

    def verify(self, status: int = 200, **body: Any) -> Json:
        """The report about what is expected."""
        answer = self.control.post("/requests/verify", json=body)
        assert status == answer.status_code, answer.text
        return dict(answer.json())


@pytest.fixture(scope="module")
def live(serve: Serve) -> Live:
    """A server whose journal is read."""
    return serve(seed=31)


@pytest.fixture
def world(live: Live) -> Iterator[World]:
    """A new frozen world."""
    made = World(live)
    yield made
    made.close()
    live.forget(made.name)


def new_customer(world: World, **body: Any) -> httpx2.Response:
    """A customer of the world."""
    return world.api.post("/v2/customers", json=customer_body(**body))


# -- the list


@pytest.mark.check
def test_a_row_tells_who_asked_what_and_what_became_of_it(world: World) -> None:
    answer = new_customer(world)
    (row,) = world.listed()
    duration, received = row.pop("duration_us"), row.pop("received_at")
    assert 0 <= wall_ms() - parse_iso(received) < 60_000  # the sandbox's clock shows another year
    assert received == world.kept(answer)["received_at"]
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
            "merchant_id": world.credentials["merchant"]["id"],
            "claims": None,
            "admitted": True,
        },
        "step": world.live.app.sandboxes.entry(world.name).sandbox.log.number,
        "simulated": None,
    } == row
    assert world.live.app.sandboxes.entry(world.name).sandbox.store.api_keys.find(key) is not None


def test_the_list_has_pages_newest_first(world: World) -> None:
    for number in range(5):
        world.api.get(f"/v2/plans?page={number + 1}")
    first, second = (done(world.control.get("/requests", params={"limit": 3, "page": page})) for page in (1, 2))
    assert ["page=5", "page=4", "page=3"] == [row["query"] for row in first["requests"]]
    assert ["page=2", "page=1"] == [row["query"] for row in second["requests"]]
    assert (5, 2, True) == (
        first["pagination"]["total"], first["pagination"]["total_pages"], first["pagination"]["has_next"]
    )  # fmt: skip


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
        ({"caller": "private_key"}, ["/v2/plans", "/v2/customers"]),
        ({"caller": "nobody"}, []),
        ({"contains": "Ana of the journal"}, ["/v2/customers"]),
        ({"contains": "note=7"}, ["/v2/plans"]),
        ({"contains": "nowhere"}, ["/v2/nowhere"]),
        ({"method": "POST", "status": "2xx"}, []),
    ],
)
def test_each_filter_means_its_requests(world: World, query: Json, expected: list[str]) -> None:
    world.api.get("/v2/plans?note=7")
    world.api.post("/v2/customers", json={"name": "Ana of the journal"})
    world.api.get("/v2/nowhere")
    httpx2.get(f"{world.live.url}/s/{world.name}/api-keys/info", verify=NO_TLS)
    assert expected == world.paths(**query)


def test_since_and_until_are_instants_of_the_sandbox_clock_both_included(world: World) -> None:
    world.api.get("/v2/plans")
    world.control.post("/clock/advance", json={"seconds": 60})
    world.api.get("/v2/customers")
    later = "2027-03-01T12:01:00.000Z"
    assert ["/v2/customers"] == world.paths(since=later) == world.paths(since="2027-03-01T12:00:00.001Z")
    assert ["/v2/plans"] == world.paths(until=NOW) == world.paths(until="2027-03-01T09:00:59.999-03:00")
    assert ["/v2/plans", "/v2/customers"] == world.paths(since=NOW, until=later)


def test_callers_are_found_by_key_user_and_merchant(world: World) -> None:
    world.api.get("/v2/plans")
    caller = world.listed()[0]["caller"]
    for name in ("key_id", "subject", "merchant_id"):
        assert ["/v2/plans"] == world.paths(caller=caller[name])


def test_requests_to_the_control_surface_are_listed_when_asked_for(world: World) -> None:
    world.api.get("/v2/plans")
    world.control.post("/clock/advance", json={"seconds": 1})
    world.control.get("/clock")
    assert ["/v2/plans"] == world.paths()
    assert ["/v2/plans", "/_sandbox/clock/advance"] == world.paths(control=True)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"operationId": "listNothing"}, "operationId"), ({"method": "GETS"}, "method"), ({"status": "40"}, "status"),
        ({"status": "6xx"}, "status"), ({"since": "yesterday"}, "since"), ({"limit": "0"}, "limit"),
        ({"path": ""}, "path"), ({"contains": "x" * 201}, "contains"), ({"control": "maybe"}, "control"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/requests", "/requests.har"])
def test_a_query_that_cannot_be_meant_is_refused(world: World, path: str, query: Json, field: str) -> None:
    if path == "/requests.har" and field == "limit":
        return
    answer = world.control.get(path, params=query)
    refused(answer, 422, "validation_error")
    assert [field] == [detail["field"] for detail in answer.json()["details"]]


def test_requests_are_forgotten_on_demand(world: World) -> None:
    world.api.get("/v2/plans")
    assert 204 == world.control.delete("/requests").status_code
    assert [] == world.paths()
    world.api.get("/v2/customers")
    assert ["/v2/customers"] == world.paths()


# -- one request


def test_one_request_is_shown_whole(world: World) -> None:
    body = customer_body()
    answer = world.api.post("/v2/customers?x=1", json=body, headers={"X-Team": "blue"})
    shown = world.kept(answer)
    assert (body, answer.json()) == (shown["request"]["body"], shown["response"]["body"])
    assert ("blue", REDACTED) == (
        shown["request"]["headers"]["x-team"], shown["request"]["headers"]["authorization"]
    )  # fmt: skip
    assert answer.headers["content-type"] == shown["response"]["headers"]["content-type"]
    assert [(name, "passed") for name in ("route", "auth", "validate", "rule", "respond")] == [
        (stage["step"], stage["outcome"]) for stage in shown["trace"]
    ]
    assert ["unknown_query_parameter:x"] == shown["warnings"]
    (event,) = done(world.control.get("/events", params={"type": "customer.created", "limit": 1}))["events"]
    assert ([event["id"]], shown["step"] - 1, None) == (shown["events"], shown["step_before"], shown["explanation"])


def test_a_refusal_is_explained(world: World) -> None:
    shown = world.kept(world.api.get("/v2/plans?limit=0"))
    assert ("contract", "validate", "refused") == (
        shown["explanation"]["kind"], shown["trace"][-1]["step"], shown["trace"][-1]["outcome"]
    )  # fmt: skip
    assert "limit=" in shown["explanation"]["nearest"]["curl"]


def test_outcomes_tell_replays_faults_and_dropped_answers(world: World) -> None:
    body = customer_body()
    first, again = (world.api.post("/v2/customers", json=body, headers={"Idempotency-Key": "one"}) for _ in range(2))
    assert ["passed", "replayed"] == [world.kept(each)["trace"][-1]["outcome"] for each in (first, again)]
    failed = world.kept(world.api.get("/v2/plans", headers={"Prefer": "code=503"}))
    assert ("simulated", "prefer") == (failed["trace"][-1]["outcome"], failed["simulated"])
    world.control.post("/faults", json={"then": {"drop_connection": "before"}})
    with pytest.raises(httpx2.HTTPError):
        world.api.get("/v2/plans")
    world.control.delete("/faults")
    dropped = world.listed(operationId="listPlans")[0]
    assert (None, "fault:fault_1") == (dropped["status"], dropped["simulated"])


def test_bodies_that_are_no_json_are_shown_as_text(world: World) -> None:
    for sent, shown in ((b"a=b", "a=b"), (b"\xff", "\ufffd"), (b"[" * 400 + b"]" * 400, "[" * 400 + "]" * 400)):
        answer = world.api.post("/v2/customers", content=sent, headers={"Content-Type": "application/json"})
        assert shown == world.kept(answer)["request"]["body"]


@pytest.mark.parametrize("ident", ["req_000000000000000000000000", "x", "req_"])
def test_a_request_that_is_not_kept_is_404(world: World, ident: str) -> None:
    answer = world.control.get(f"/requests/{ident}")
    refused(answer, 404, "not_found")


def test_curl_sends_the_request_again_as_pasted(world: World, tmp_path: Any) -> None:
    """With the ready token instead of the credential that was sent, or that was not."""
    body = customer_body() | {"name": 'D\'Ávila & "Filhos" $HOME `x` @'}
    made = world.kept(world.api.post("/v2/customers", json=body, headers={"X-Team": "a'b"}))
    read = world.kept(world.api.get("/v2/plans?limit=2&x=%27"))
    stranger = world.kept(httpx2.get(f"{world.live.url}/s/{world.name}/v2/plans", verify=NO_TLS))
    head = world.kept(world.api.head("/v2/plans"))
    assert [[409], [200], [200], [200]] == [pasted(each["curl"], tmp_path) for each in (made, read, stranger, head)]
    again = world.listed(operationId="createCustomer")[0]
    sent = done(world.control.get(f"/requests/{again['id']}"))["request"]["request"]
    assert (body, "a'b") == (sent["body"], sent["headers"]["x-team"])


@pytest.mark.check
def test_what_was_not_kept_whole_has_no_curl(world: World, serve: Serve) -> None:
    assert world.kept(world.api.get("/v2/plans?" + "x" * 2_000))["curl"] is None
    hiding = {"metadata": {"key": world.credentials["private_key"].replace("_", "%5F")}}
    left_out = world.kept(world.api.post("/v2/customers", json=customer_body() | hiding))
    assert (201, "[redacted]", None) == (left_out["status"], left_out["request"]["body"], left_out["curl"])
    bare = World(serve(seed=31, journal=0))
    answer = new_customer(bare)
    assert bare.kept(answer)["curl"] is None
    bare.close()


# -- HAR


def test_a_har_warns_of_a_query_parameter_that_it_does_not_know(world: World) -> None:
    answer = world.control.get("/requests.har", params={"limit": 1})
    assert (200, "unknown_query_parameter:limit") == (answer.status_code, answer.headers.get("x-sandbox-warnings"))


def test_har_has_the_same_requests_oldest_first(world: World) -> None:
    world.api.get("/v2/plans?limit=1&x=a%20b")
    new_customer(world)
    answer = world.control.get("/requests.har", params={"path": "/v2/*"})
    assert "application/har+json" == answer.headers["content-type"]
    found = answer.json()["log"]
    assert ("1.2", ["GET", "POST"]) == (found["version"], [entry["request"]["method"] for entry in found["entries"]])
    read, wrote = found["entries"]
    assert f"{world.live.url}/s/{world.name}/v2/plans?limit=1&x=a%20b" == read["request"]["url"]
    assert [{"name": "limit", "value": "1"}, {"name": "x", "value": "a b"}] == read["request"]["queryString"]
    assert (201, "Created") == (wrote["response"]["status"], wrote["response"]["statusText"])
    parsed = HarParser(answer.json())
    entries = [HarEntry(entry) for entry in parsed.har_data["entries"]]
    assert ("1.2", "stub-server") == (parsed.version, parsed.creator["name"])
    assert [(200, "GET", "application/json"), (201, "POST", "application/json")] == [
        (entry.response.status, entry.request.method, entry.response.mimeType) for entry in entries
    ]
    assert entries[0].startTime <= entries[1].startTime
    assert orjson.loads(entries[1].request.text) == orjson.loads(wrote["request"]["postData"]["text"])
    assert wrote["response"]["content"]["size"] == len(wrote["response"]["content"]["text"].encode())
    assert world.credentials["private_key"] not in answer.text


@pytest.mark.check
def test_a_reader_of_har_who_does_not_read_is_cut_off_and_holds_little(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive is made as it is read: of twenty megabytes the server has a few buffers ready."""
    monkeypatch.setattr(answers, "PATIENCE", 0.3)
    large = {"name": "x" * 250_000}
    for _ in range(80):
        refused(world.api.post("/v2/customers", json=large), 422, "validation_error")
    with socket.socket() as his:
        his.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        his.connect(("127.0.0.1", world.live.port))
        his.sendall(f"GET /s/{world.name}/_sandbox/requests.har HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        time.sleep(1.5)
        done(world.control.get("/requests"))  # others are served
        received = 0
        with suppress(ConnectionResetError):
            while part := his.recv(65_536):
                received += len(part)
    assert 0 < received < 8_000_000
    assert 20_000_000 < len(world.control.get("/requests.har").content)


# -- what was expected


def test_what_is_expected_and_happened_holds(world: World) -> None:
    ids = [new_customer(world).headers["X-Request-Id"] for _ in range(2)]
    world.api.get("/v2/plans?limit=5", headers={"X-Team": "blue"})
    wanted = {"operationId": "createCustomer", "body": {"email": "*@*"}}
    report = world.verify(request=wanted, response={"status": 201}, times={"exactly": 2})
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
        {"since": "2027-03-01T12:00:00.001Z", "times": {"exactly": 0}},
    ):
        assert world.verify(**body)["ok"], body


@pytest.mark.parametrize(
    ("expected", "says"),
    [
        ({"request": {"body": {"x": "*a" * 101}}}, "A glob has at most 200 characters."),
        ({"response": {"body": {"x": [*range(1_000)]}}}, "At most 1000 values can be expected."),
    ],
    ids=["glob", "values"],
)
def test_an_expectation_that_takes_too_long_is_refused(world: World, expected: Json, says: str) -> None:
    """A glob of 400,000 characters held the server up for two seconds."""
    answer = world.control.post("/requests/verify", json=expected)
    assert (422, "validation_error") == (answer.status_code, answer.json()["code"])
    assert says in answer.json()["message"]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (
            {"operationId": "createPixOrdr"},
            ["There is no operation createPixOrdr. Did you mean createPixOrder?"],
        ),
        ({"operationId": "crate*"}, ["There is no operation crate*."]),
        (
            {"operationId": "rewindSandbx"},
            ["There is no operation rewindSandbx. Did you mean rewindSandbox?"],
        ),
        ({"method": "POSTT"}, ["There is no method of HTTP POSTT. Did you mean POST?"]),
        ({"method": "x*"}, ["There is no method of HTTP x*."]),
        (
            {"method": "psot", "operationId": "listOrdersX"},
            [
                "There is no operation listOrdersX. Did you mean listOrders?",
                "There is no method of HTTP psot. Did you mean POST?",
            ],
        ),
    ],
    ids=str,
)
def test_nothing_holds_of_what_nobody_has(world: World, request_: Json, says: list[str]) -> None:
    """Nothing matches a mistyped name, so that "never" would hold for ever."""
    answer = world.control.post("/requests/verify", json={"request": request_, "times": {"exactly": 0}})
    report = answer.json()
    assert (409, False, "verification_failed") == (answer.status_code, report["ok"], report["code"])
    assert says == report["unknown"]


def test_an_operation_of_the_control_surface_is_found_by_its_name(world: World) -> None:
    """Without a path that begins with /_sandbox: no request to the API has it."""
    assert 200 == world.control.post("/clock/advance", json={"days": 1}).status_code
    assert 1 == world.verify(request={"operationId": "advanceClock"}, times={"exactly": 1})["matched"]
    assert 0 == world.verify(request={"method": "POST"}, times={"exactly": 0})["matched"]


@pytest.mark.parametrize(
    ("request_", "warnings"),
    [
        ({"path": "/v2/order/pix"}, "unknown_path"),
        ({"path": "/v2/orders?limit=1"}, "unknown_path"),
        ({"path": "/s/alice/v2/orders"}, "unknown_path"),
        ({"path": "/v2/orders/"}, "unknown_path"),
        ({"path": "/v2/ordrs*"}, "unknown_path"),
        ({"path": "/_sandbox/clok/*"}, "unknown_path"),
        ({"method": "TRACE"}, "unknown_method"),
        ({"method": "put", "path": "/v2/orders"}, "unknown_method"),
        ({"method": "PATCH", "path": "/v2/orders*"}, "unknown_method"),
        ({"body": {"$.customer.email": "a@b.co"}}, "path_as_name"),
        ({"path": "/v2/ordr", "body": {"$[0]": 1}}, "unknown_path, path_as_name"),
        ({"operationId": "create*"}, None),
        ({"path": "/v2/orders"}, None),
        ({"path": "/v2/orders/*", "method": "HEAD"}, None),
        ({"path": "/v2/orders/0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55"}, None),
        ({"path": "/v2/*/ac*", "method": "p*"}, None),
        ({"path": "/v2/project?/*/stats"}, None),
        ({"path": "*/pix", "method": "options"}, None),
        ({"path": "/api-keys/merchant/pk_*"}, None),
        ({"path": "*"}, None),
        ({"path": "/_sandbox/sandboxes/*/fork"}, None),
        ({"body": {"customer": {"email": "a@b.co"}}}, None),
    ],
    ids=str,
)
def test_what_no_request_can_have_is_warned_of(world: World, request_: Json, warnings: str | None) -> None:
    """A slip in a path, a method or a body, with which "never" would hold for ever."""
    for times, status in (({"at_most": 0}, 200), ({"at_least": 1}, 409)):
        answer = world.control.post("/requests/verify", json={"request": request_, "times": times})
        assert (status, warnings) == (answer.status_code, answer.headers.get("x-sandbox-warnings"))
        assert (warnings.split(", ") if warnings else []) == answer.json()["warnings"]


def test_warnings_of_the_verification_itself_are_in_its_headers_alone(world: World) -> None:
    """A slip in its own headers or query was a 500: the report has warnings of what is expected."""
    answer = world.control.post(
        "/requests/verify?x=1",
        json={"request": {"path": "/v2/ordr"}, "times": {"at_most": 0}},
        headers={"X-Sandbox-Foo": "1", "If-Match": "*"},
    )
    assert (200, ["unknown_path"]) == (answer.status_code, answer.json()["warnings"])
    assert {"if_match_ignored", "unknown_query_parameter:x", "unknown_path"} <= {
        *answer.headers["x-sandbox-warnings"].split(", ")
    }


@pytest.mark.parametrize(("code", "warnings"), [("not_fuond", ["unknown_code"]), ("not_found", []), ("*_found", [])])
def test_an_error_code_that_no_contract_has_is_warned_of(world: World, code: str, warnings: list[str]) -> None:
    assert warnings == world.verify(response={"code": code}, times={"exactly": 0})["warnings"]


def test_what_a_request_had_after_all_is_not_warned_of(world: World) -> None:
    """Whoever wants to see that a wrong address is refused asks for one that no operation has."""
    assert 404 == world.api.get("/v2/ordr").status_code
    assert 405 == world.api.put("/v2/orders").status_code
    for wanted in ({"path": "/v2/ordr"}, {"path": "/v2/orders", "method": "PUT"}):
        answer = world.control.post("/requests/verify", json={"request": wanted})
        assert (200, None) == (answer.status_code, answer.headers.get("x-sandbox-warnings"))


@pytest.mark.check
def test_requests_that_were_forgotten_are_warned_of(serve: Serve) -> None:
    """Whoever counts is told that the journal is not whole; what was cleared on purpose was not forgotten."""
    world = World(serve(journal=3))
    expected, said = {"times": {"at_most": 9}}, []
    for _ in range(5):
        world.api.get("/v2/plans")
        said.append(world.control.post("/requests/verify", json=expected).headers.get("x-sandbox-warnings"))
        if said[-1]:
            world.control.delete("/requests")
    world.close()
    assert said[0] is None
    assert "oldest_requests_forgotten" in said
    assert said[said.index("oldest_requests_forgotten") + 1] is None


def test_what_is_expected_and_did_not_happen_is_409_with_the_nearest_misses(world: World) -> None:
    answers = [new_customer(world) for _ in range(4)]
    world.api.get("/v2/plans")
    report = world.verify(
        409, request={"operationId": "createCustomer", "body": {"email": "ana@example.net", "metadata": {"a": 1}}}
    )
    assert (False, "verification_failed", 0, {"at_least": 1}, []) == tuple(
        report[name] for name in ("ok", "code", "matched", "expected", "requests")
    )
    assert [answer.headers["X-Request-Id"] for answer in answers[:0:-1]] == [miss["id"] for miss in report["nearest"]]
    email, metadata = report["nearest"][0]["differences"]
    sent = orjson.loads(answers[-1].request.content)
    assert {"where": "request.body.email", "expected": "ana@example.net", "actual": sent["email"]} == email
    assert ("request.body.metadata", {"a": 1}) == (metadata["where"], metadata["expected"])


def test_a_miss_in_a_value_is_nearer_than_another_operation(world: World) -> None:
    answer = world.api.get("/v2/plans?limit=3")
    world.api.get("/v2/customers")
    report = world.verify(409, request={"operationId": "listPlans", "query": {"limit": "4"}})
    nearest, other = report["nearest"]
    assert (answer.headers["X-Request-Id"], [{"where": "request.query.limit", "expected": "4", "actual": "3"}]) == (
        nearest["id"], nearest["differences"]
    )  # fmt: skip
    assert [{"where": "request.operationId", "expected": "listPlans", "actual": "listCustomers"}] == other[
        "differences"
    ]


def test_what_is_absent_is_told_apart_from_null(world: World) -> None:
    """Both were shown as `expected: null, actual: null`."""
    world.api.post("/v2/customers?a=1", json={"name": None, "metadata": {}})
    expected = {"body": {"name": "Ana", "document": None, "metadata": {"a": {"b": 1}}}, "query": {"b": "2"}}
    found = world.verify(409, request=expected, response={"body": {"customer": {}}})["nearest"][0]["differences"]
    assert [
        {"where": "request.query.b", "expected": "2"},
        {"where": "request.body.name", "expected": "Ana", "actual": None},
        {"where": "request.body.document", "expected": None},
        {"where": "request.body.metadata.a", "expected": {"b": 1}},
        {"where": "response.body.customer", "expected": {}},
    ] == found


def test_a_message_without_a_body_has_none(world: World) -> None:
    world.api.get("/v2/plans")
    assert world.verify(request={"operationId": "listPlans", "body": None})["ok"]
    report = world.verify(409, request={"operationId": "listPlans", "body": {}}, response={"code": "not_found"})
    assert [
        {"where": "response.code", "expected": "not_found"}, {"where": "request.body", "expected": {}},
    ] == report["nearest"][0]["differences"]  # fmt: skip


def test_too_many_are_as_wrong_as_too_few(world: World) -> None:
    world.api.get("/v2/plans")
    assert 1 == world.verify(409, request={"path": "/v2/plans"}, times={"at_most": 0})["matched"]
    assert 1 == world.verify(409, request={"path": "/v2/plans"}, times={"exactly": 2})["matched"]


@pytest.mark.parametrize(
    ("expected", "actual", "holds"),
    [
        ({"a": [1, {"b": "x*"}]}, {"a": [1, {"b": "xy", "c": 0}], "d": 0}, True), ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": "1"}, {"a": 1}, False), ({"a": True}, {"a": 1}, False), ({"a": 1}, {"a": 1.0}, True),
        ({"a": None}, {}, False), ({"a": None}, {"a": None}, True), ({}, {"a": 1}, True), ({"a": {}}, {"a": 1}, False),
        ({"a": "[x]?"}, {"a": "[x]y"}, True), ({"a": "[x]"}, {"a": "x"}, False),
    ],
)  # fmt: skip
def test_objects_match_as_subsets_and_texts_as_globs(world: World, expected: Json, actual: Json, holds: bool) -> None:
    world.api.post("/v2/customers", json=actual)
    world.verify(200 if holds else 409, request={"body": expected})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"times": {}}, "times"), ({"times": {"exactly": 1, "at_most": 2}}, "times"),
        ({"times": {"twice": 2}}, "times.twice"),
        ({"request": {"paths": "/x"}}, "request.paths"), ({"response": {"status": 99}}, "response.status"),
        ({"since": "now"}, "since"), ({"request": {"query": {"a": 1}}}, "request.query.a"),
        ({"times": {"exactly": -1}}, "times.exactly"),
    ],
)  # fmt: skip
def test_an_expectation_that_cannot_be_meant_is_refused(world: World, body: Json, field: str) -> None:
    answer = world.control.post("/requests/verify", json=body)
    refused(answer, 422, "validation_error")
    assert field in [detail["field"] for detail in answer.json()["details"]]


def test_a_long_value_is_looked_at_in_part(world: World) -> None:
    """A glob costs its length times that of the text."""
    world.api.post("/v2/customers", json={"name": "a" * 5_000 + "b"})
    report = world.verify(409, request={"body": {"name": "*b"}})
    assert 501 == len(report["nearest"][0]["differences"][0]["actual"])
    assert world.verify(request={"body": {"name": "a" * 5_000 + "b"}})["ok"]
