"""A request to the server that does not have its sandbox is answered as by the one that has it."""

import re
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from ..agents.agent import Agent, facts_of, over_http, text_of
from ..support.live import NO_TLS
from ..support.make import Json, created, customer_body
from ..support.processes import Process
from ..support.wire import Door, answer_on, connect, rest_of
from .conftest import Pair

pytestmark = pytest.mark.check
MARK = re.compile(rb"req_[0-9a-f]+|date: [^\r]*|t=\d+|r=\d+")


def raw(door: Door, head: str, body: bytes = b"") -> bytes:
    """All bytes that come back for a request that ends its connection, without what is of
    the moment.
    """
    with connect(door.port) as connection:
        connection.sendall(
            head.format(prefix=door.prefix, token=door.token).encode("latin-1") + body
        )
        return MARK.sub(b"*", rest_of(connection))


def head(line: str, *headers: str) -> str:
    """The head of a request."""
    return "\r\n".join(
        (f"{line} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", "")
    )


AUTH = "Authorization: Bearer {token}"
JSON = "Content-Type: application/json"
SAME = {
    "list": head("GET {prefix}/v2/plans?limit=3&sort=name", AUTH),
    "not encoded": head("GET {prefix}/v2/plans?name=Jos\xc3\xa9&note=%C3%A9%2F+\xe9", AUTH),
    "warned": head("GET {prefix}/v2/plans?a=%20b&a=c;d&%C3%A7=%2F", AUTH, "X-Sandbox-Dealy: 3"),
    "head": head("HEAD {prefix}/v2/plans", AUTH),
    "absent": head("GET {prefix}/v2/plans/a%2Fb%20c", AUTH),
    "no route": head("GET {prefix}/v2//../planes", AUTH),
    "no credential": head("GET {prefix}/v2/plans"),
    "not allowed": head("DELETE {prefix}/v2/plans", AUTH),
    "options": head("OPTIONS {prefix}/v2/plans", AUTH),
    "preflight": head(
        "OPTIONS {prefix}/v2/plans",
        "Origin: http://localhost:3",
        "Access-Control-Request-Method: GET",
    ),
    "page": head("GET {prefix}/v2/plans", AUTH, "Origin: http://localhost:3"),
    "foreign page": head("GET {prefix}/_sandbox/clock", "Origin: https://evil.example"),
    "foreign host": head("GET {prefix}/v2/plans", AUTH).replace("localhost", "evil.example"),
    "two of one": head("GET {prefix}/v2/plans", AUTH, AUTH),
    "many of one": head(
        "GET {prefix}/v2/plans", AUTH, "X-Note: \xe7", "X-Note: b", "Accept: a", "Accept: b"
    ),
    "by header": head("GET /v2/plans", AUTH, "X-Sandbox: team"),
    "by token": head("GET /v2/plans", AUTH),
    "absolute": head("GET http://localhost{prefix}/v2/plans", AUTH),
    "old": head("GET {prefix}/v2/plans", AUTH).replace("HTTP/1.1", "HTTP/1.0"),
    "websocket": head("GET {prefix}/v2/plans", AUTH, "Upgrade: websocket"),
    "coding": head("POST {prefix}/v2/customers", AUTH, JSON, "Transfer-Encoding: gzip, chunked"),
    "page of the console": head("GET {prefix}/"),
    "to the pages": head("GET {prefix}"),
    "contract": head("GET {prefix}/openapi.json"),
    "simulated": head("GET {prefix}/v2/plans", AUTH, "X-Sandbox-Simulate: rate_limited"),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.matrix
def test_the_same_bytes_come_back(pair: Pair, name: str) -> None:
    at_once, over_a_hop = (raw(door, SAME[name]) for door in pair.doors)
    assert at_once.startswith(b"HTTP/1.1 "), at_once
    ours = b"%d" % pair.holder.port, b"%d" % pair.other.port
    # The pages and the contract that a server without the sandbox has in memory need not be the
    # holder's.
    assert at_once.replace(ours[0], b"*") == over_a_hop.replace(ours[0], b"*").replace(
        ours[1], b"*"
    )


def test_an_agent_works_at_the_server_that_has_its_sandbox(pair: Pair) -> None:
    async def work(agent: Agent) -> None:
        begun = text_of(await agent("start"))
        assert "/s/team\n" in begun
        made = await agent("call_api", operation="createCustomer", body=customer_body())
        assert facts_of(made)["http_status"] == 201, text_of(made)

    over_http(f"http://127.0.0.1:{pair.other.port}/s/team", work)


BODY = b'{"name":"one"}'


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ((f"Content-Length: {len(BODY)}",), BODY),
        (("Transfer-Encoding: chunked",), b"5\r\n" + BODY[:5] + b"\r\n1;x=y\r\n" + BODY[5:6] + b"\r\n8\r\n" + BODY[6:] +
         b"\r\n0\r\nX-Trailer: a\r\n\r\n"),
        ((f"Content-Length: {len(BODY)}", "Expect: 100-continue"), BODY),
        (("Content-Length: 5",), BODY[:5]),
        (("Content-Length: 0",), b""),
    ],
)  # fmt: skip
def test_bodies_arrive_as_they_are_sent(pair: Pair, headers: tuple[str, ...], body: bytes) -> None:
    asked = head("POST {prefix}/v2/customers", AUTH, JSON, *headers)
    at_once, over_a_hop = (raw(door, asked, body) for door in pair.doors)
    assert re.search(rb"HTTP/1.1 (400|422) ", at_once)
    assert at_once == over_a_hop


def newest(process: Process) -> list[Json]:
    """The newest two requests of the sandbox, whole, without what differs anyway."""
    with process.control("team") as control:
        shown = control.get("/requests", params={"limit": 2}).json()["requests"]
        found = [control.get(f"/requests/{row['id']}").json()["request"] for row in shown]
    for entry in found:
        for name in (
            "id",
            "at",
            "received_at",
            "duration_us",
            "trace",
            "curl",
            "caller",
            "explanation",
        ):
            entry.pop(name)
        entry["request"]["headers"].pop("connection", None)  # each hop has its own
        for name in ("x-request-id", "ratelimit"):
            entry["response"]["headers"].pop(name, None)
        entry["response"]["body"].pop("request_id", None)
    return found


def test_the_journal_of_the_holder_has_the_request_of_the_client(pair: Pair) -> None:
    body = b'{"name":3}'
    for door in pair.doors:
        answer = door.ask(
            "POST",
            "/v2/customers?a=%20",
            body,
            headers=[("X-Note", "a"), ("X-Note", "b")],
            host="localhost",
        )
        assert 422 == answer.status
    one, two = newest(pair.holder)
    assert one == two
    assert "x-sandbox-hop" not in one["request"]["headers"]
    assert {"name": 3} == one["request"]["body"]


# -- ends


def test_an_upload_that_is_cut_is_cut_at_the_holder(pair: Pair) -> None:
    for door in pair.doors:
        with connect(door.port) as connection:
            lines = head("POST {prefix}/v2/customers", AUTH, JSON, "Content-Length: 40")
            connection.sendall(
                lines.format(prefix=door.prefix, token=door.token).encode() + b'{"name": "one'
            )
            time.sleep(0.3)
    time.sleep(1)
    one, two = newest(pair.holder)
    assert one == two
    assert (400, "40") == (one["status"], one["request"]["headers"]["content-length"])


# -- what lasts


@contextmanager
def following(process: Process) -> Iterator[Iterator[str]]:
    """The lines of the stream of the sandbox."""
    with (
        httpx2.Client(
            base_url=f"{process.url}/s/team/_sandbox", timeout=10, verify=NO_TLS
        ) as client,
        client.stream("GET", "/stream") as answer,
    ):
        assert 200 == answer.status_code
        yield answer.iter_lines()


def test_a_stream_comes_piece_by_piece(pair: Pair) -> None:
    with following(pair.other) as lines, pair.holder.api("team") as api:
        assert "retry: 1000" == next(lines)
        for _ in range(3):
            created(api.post("/v2/customers", json=customer_body()))
            while next(lines) != "event: request":  # the stream itself has no end
                pass


def test_a_request_that_waits_ends_with_its_client(pair: Pair) -> None:
    """A sandbox has 64 places to wait: they are free again long before a minute is over."""
    asked = "GET /s/team/_sandbox/events?wait={} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    waiting = [connect(pair.other.port) for _ in range(65)]
    for one in waiting:
        one.sendall(asked.format(60).encode())
    (refused, *_), _, _ = select.select(waiting, [], [], 30)
    assert 429 == answer_on(refused).status
    for one in waiting:
        one.close()
    until = time.monotonic() + 30
    status = 429
    while status == 429:
        assert time.monotonic() < until
        with connect(pair.holder.port) as another:
            another.sendall(asked.format(1).encode())
            status = answer_on(another).status
    assert 200 == status


# -- where it comes from


def test_the_holder_sees_the_address_of_the_client(pair: Pair) -> None:
    with pair.holder.api("team") as api:
        body = {"name": "office", "scopes": ["plans:read"], "allowed_ips": ["127.0.0.3/32"]}
        key = created(api.post("/api-keys", json=body))["api_key"]["private_key"]
    statuses = []
    for source in ("127.0.0.3", "127.0.0.1"):
        with socket.create_connection(
            ("127.0.0.1", pair.other.port), source_address=(source, 0)
        ) as connection:
            lines = head("GET {prefix}/v2/plans", AUTH)
            connection.sendall(lines.format(prefix="/s/team", token=key).encode())
            statuses.append(answer_on(connection).status)
    assert [200, 403] == statuses


def test_health_and_metrics_are_the_server_s_own(pair: Pair) -> None:
    """Another server may have the default sandbox."""
    begun = set()
    for process in (pair.holder, pair.other):
        assert 200 == httpx2.get(f"{process.url}/_sandbox/health", verify=NO_TLS).status_code
        with process.control() as control:
            text = control.get(f"{process.url}/_sandbox/metrics").text
        begun |= {line for line in text.splitlines() if line.startswith("process_start_time")}
    assert 2 == len(begun)


def test_a_sandbox_is_found_by_a_request_that_names_another_one(pair: Pair) -> None:
    """Credential, header or prefix are of a sandbox of one server, the path is about one
    of the other.
    """
    path = "/_sandbox/sandboxes/team"
    with pair.other.api("mine") as api, pair.other.control() as control:
        home = str(api.base_url).partition("/s/")[0]
        assert 200 == api.get(f"{home}{path}").status_code
        assert 200 == api.get(f"{home}/s/mine{path}").status_code
        assert 200 == control.get(f"{home}{path}", headers={"X-Sandbox": "mine"}).status_code
        assert 201 == api.post(f"{home}{path}/fork", json={"name": "forked"}).status_code
        assert 204 == api.delete(f"{home}/_sandbox/sandboxes/forked").status_code
