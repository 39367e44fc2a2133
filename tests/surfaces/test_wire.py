"""Before a request is one: headers without end, trailers that would be headers, and bytes that are
no HTTP at all.
"""

import json
import shlex
import socket
from contextlib import suppress
from typing import Any

import pytest

from stub_server.server.protocol import LARGEST_HEAD

from ..conftest import Serve
from ..support.live import Live
from ..support.make import customer_body
from ..support.processes import Process
from ..support.refusal import refused
from ..support.wire import Answer, Door, answer_on, connect, exchange, rest_of

MANY = 64 * 1024 * 1024


def head(
    live: Live, *lines: str, size: int = 0, method: str = "GET", path: str = "/_sandbox/health"
) -> bytes:
    """A request's headers, filled up to exactly so many bytes."""
    text = "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{live.port}", *lines])
    if size:
        text += "\r\nX-Fill: "
        text += "a" * (size - len(text) - 4)
    return text.encode() + b"\r\n\r\n"


def refused_and_hung_up(live: Live, sent: bytes, status: int, code: str) -> dict[str, Any]:
    """One refusal in the one shape, and nothing after it."""
    with connect(live.port) as connection:
        connection.sendall(sent)
        answer = answer_on(connection)
        body = refused(answer, status, code)
        assert answer.header("connection") == "close"
        assert rest_of(connection) == b""
    return body


# -- headers


@pytest.mark.promise("headers")
@pytest.mark.parametrize("arrives", ["at once", "in two pieces"])
def test_a_byte_more_is_431(live: Live, arrives: str) -> None:
    sent = head(live, size=LARGEST_HEAD + 1)
    if arrives == "at once":
        refused_and_hung_up(live, sent, 431, "headers_too_large")
        return
    with connect(live.port) as connection:
        connection.sendall(sent[:40_000])
        assert others_are_served(live)
        connection.sendall(sent[40_000:])
        refused(answer_on(connection), 431, "headers_too_large")


def others_are_served(live: Live) -> bool:
    """Whether others are served."""
    return Door(live.port, "", "x").ask("GET", "/_sandbox/health").status == 200


@pytest.mark.promise("number-headers")
def test_a_request_has_a_hundred_headers(live: Live) -> None:
    """Thousands of headers, all different, kept everybody waiting for half a second."""
    for number, expected in ((98, 200), (100, 200), (101, 431), (3_400, 431)):
        sent = head(live, *(f"X-Sandbox{n}: 1" for n in range(number - 1)))
        answer = exchange(live.port, "GET", sent)
        assert answer.status == expected
    assert refused(answer, 431, "headers_too_large")["message"].startswith(
        "The request has more than 100 headers"
    )


@pytest.mark.promise("members-query")
def test_a_query_has_a_thousand_members(live: Live) -> None:
    for path in ("/_sandbox/requests", "/console/requests", "/v2/nothing"):
        most, more, many = (
            "&".join(f"a{n}" for n in range(number)) for number in (1_000, 1_001, 9_000)
        )
        assert exchange(live.port, "GET", head(live, path=f"{path}?{most}")).status != 414
        refused(exchange(live.port, "GET", head(live, path=f"{path}?{more}")), 414, "uri_too_long")
        refused(exchange(live.port, "GET", head(live, path=f"{path}?{many}")), 414, "uri_too_long")


def test_a_command_of_a_strangers_target_calls_this_server(live: Live) -> None:
    """It has a token: `http://127.0.0.1:4600*@evil.example/` would give it to another machine."""
    sent = b"GET *@evil.example/v2/customers HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ident = exchange(live.port, "GET", sent).header("x-request-id")
    found = Door(live.port, "", "").ask("GET", f"/_sandbox/requests/{ident}", token=None).json()
    (url,) = [word for word in shlex.split(found["request"]["curl"]) if word.startswith("http")]
    assert f"{live.url}/*@evil.example/v2/customers" == url


@pytest.mark.promise("nothing-request-costs-more-length")
@pytest.mark.parametrize("before", ["/x", "/console", "/docs", "/guide", "/pay"])
def test_a_page_that_is_none_is_small(live: Live, before: str) -> None:
    """Each link of a page had as many `../` as its path has slashes: eleven megabytes."""
    sent = head(live, "Accept: text/html", path=before + "/a" * 30_000)
    answer = exchange(live.port, "GET", sent)
    assert 404 == answer.status
    assert len(answer.body) < 100_000


def taken(connection: socket.socket) -> int:
    """How much of an endless header the server takes before it hangs up."""
    size = 0
    try:
        connection.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
        while size < MANY:
            connection.sendall(b"a" * 65_536)
            size += 65_536
    except ConnectionError:
        pass
    return size


def test_whoever_goes_on_sending_is_cut_off(live: Live) -> None:
    """It was read to the end: 200 MB of one header took 53 seconds, and nobody else was served."""
    with connect(live.port) as connection:
        assert taken(connection) < MANY
    assert others_are_served(live)


# -- what is no HTTP


@pytest.mark.parametrize(
    "sent",
    [
        "GET /v2/clientes/São-Paulo HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
        b"GET /v2/\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET v2/plans HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
        b"GET /v2/plans?name=a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v2/plans HTTP/1.2\r\nHost: localhost\r\n\r\n",
        b"FOO /v2/plans HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\nHost: localhost\nUpgrade: h2c\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=[
        "UTF-8", "control", "no slash", "CONNECT", "space", "HTTP/1.2", "method", "TLS", "HTTP/2", "no colon",
        "line feeds", "two lengths", "two framings",
    ],
)  # fmt: skip
def test_what_is_no_http_is_400_at_once_and_not_told_on_the_terminal(
    live: Live, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(live.port) as connection:
        connection.sendall(sent)
        answer = answer_on(connection)
        assert (400, "close", b"") == (
            answer.status,
            answer.header("connection"),
            rest_of(connection),
        )
    assert [] == caplog.messages


HERE = b"\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"TRACE /v2/plans HTTP/1.1" + HERE, 405, "method_not_allowed"),
        (b"QUERY /v2/plans HTTP/1.1" + HERE, 405, "method_not_allowed"),
        (b"CONNECT /v2/plans HTTP/1.1" + HERE, 405, "method_not_allowed"),
        (
            b"POST /v2/plans HTTP/1.1" + HERE + b"Transfer-Encoding: gzip, chunked\r\n",
            501,
            "not_implemented",
        ),
        (
            b"POST /v2/plans HTTP/1.1"
            + HERE
            + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            400,
            "malformed_request",
        ),
        (b"GET /v2%2Fplans HTTP/1.1" + HERE, 404, "route_not_found"),
        (b"GET /v2%2fplans HTTP/1.1" + HERE, 404, "route_not_found"),
        (b"GET /v2/plans HTTP/1.1\r\n", 400, "malformed_request"),
        (b"GET http://localhost/v2/plans HTTP/1.1\r\n", 400, "malformed_request"),
        (b"GET http://localhost/v2/plans HTTP/1.1" + HERE, 401, "missing_credentials"),
        (
            b"GET http://evil.example/v2/plans HTTP/1.1\r\nHost: evil.example\r\n",
            403,
            "host_not_allowed",
        ),
        (b"GET /_sandbox/health HTTP/1.0\r\n", 200, None),
    ],
    ids=lambda value: value.decode().partition("\r")[0] if isinstance(value, bytes) else str(value),
)
def test_the_head_is_read_as_http_says(
    live: Live, sent: bytes, status: int, code: str | None
) -> None:
    """RFC 9110, RFC 9112 3.2: methods, transfer codings, encoded slashes and the Host."""
    with connect(live.port) as connection:
        connection.sendall(sent + b"\r\n" + (b"0\r\n\r\n" if b"chunked" in sent else b""))
        answer = answer_on(connection)
        assert status == answer.status
        if code is not None:
            refused(answer, status, code)


@pytest.mark.promise("deciding-headers-once")
@pytest.mark.parametrize(
    "name",
    [
        "X-Sandbox-Admin-Key",
        "Authorization",
        "X-Sandbox",
        "X-Sandbox-As-Of",
        "Idempotency-Key",
        "Content-Type",
        "Origin",
        "Host",
    ],
)
def test_a_header_that_decides_comes_once(live: Live, name: str) -> None:
    """Of two the last one won, whichever a proxy had looked at."""
    with connect(live.port) as connection:
        connection.sendall(head(live, f"{name}: a", f"{name.lower()}: b", path="/_sandbox/clock"))
        assert name in refused(answer_on(connection), 400, "malformed_request")["message"]


# -- trailers


def trailing(
    live: Live, *trailers: str, lines: tuple[str, ...] = (), path: str = "/_sandbox/clock"
) -> Answer:
    """A request whose chunked body ends with trailers, in one piece: they have come
    before it is handled.
    """
    sent = head(
        live, "Transfer-Encoding: chunked", "Content-Type: application/json", *lines, path=path
    )
    body = "2\r\n{}\r\n0\r\n" + "".join(f"{line}\r\n" for line in trailers) + "\r\n"
    with connect(live.port) as connection:
        connection.sendall(sent + body.encode())
        answer = answer_on(connection)
        connection.sendall(head(live))
        assert answer_on(connection).status == 200, "the connection goes on"
        return answer


@pytest.mark.promise("trailers-are-no-headers")
def test_an_admin_key_in_a_trailer_opens_nothing(serve: Serve) -> None:
    live = serve(admin_key="a-long-admin-key", scenario="empty")
    key = "X-Sandbox-Admin-Key: a-long-admin-key"
    assert trailing(live, lines=(key,)).status == 200
    refused(trailing(live, key), 403, "admin_key_required")


@pytest.mark.promise("trailers-chunk-extensions-body")
@pytest.mark.parametrize(
    "start", [b"0\r\nX-Long: ", b"1;extension=", b"1\r\n{\r\n0\r\n" + b"A:b\r\n" * 14_000 + b"X: "]
)
def test_trailers_and_chunk_extensions_without_end_are_cut_off(
    live: Live, door: Door, start: bytes
) -> None:
    """A credential is asked for first; behind it they would be read to the end."""
    sent = head(
        live,
        f"Authorization: Bearer {door.token}",
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
        method="POST",
        path=f"{door.prefix}/v2/customers",
    )
    with connect(live.port) as connection:
        with suppress(ConnectionError):
            connection.sendall(sent + start)
            for _ in range(100):
                connection.sendall(b"a" * LARGEST_HEAD)
            pytest.fail("The server has read all of it.")
        assert rest_of(connection) == b""


# -- other protocols


UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
SOCKET = (
    "Connection: Upgrade",
    "Upgrade: WebSocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: eA==",
)


@pytest.mark.parametrize("path", ["/_sandbox/health", "/v2/customers", "/nothing"])
def test_a_websocket_is_refused_in_the_one_shape_and_the_connection_goes_on(
    live: Live, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(live.port) as connection:
        connection.sendall(head(live, *SOCKET, path=path))
        refused(answer_on(connection), 400, "malformed_request")
        connection.sendall(head(live))
        assert 200 == answer_on(connection).status
    assert [] == caplog.messages


def framed(body: bytes, framing: str) -> tuple[str, bytes]:
    """The header that says how long a body is, and the body as it is sent."""
    if framing == "length":
        return f"Content-Length: {len(body)}", body
    chunks = [body[:20], body[20:], b""]
    return "Transfer-Encoding: chunked", b"".join(
        b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks
    )


def new_customer(live: Live, door: Door, framing: str, *lines: str) -> tuple[bytes, bytes]:
    """The head and body of a request that creates a customer; the body has blank lines."""
    length, body = framed(b"\r\n\r\n" + json.dumps(customer_body()).encode() + b"\r\n\r\n", framing)
    lines = (
        *lines,
        f"Authorization: Bearer {door.token}",
        "Content-Type: application/json",
        length,
    )
    return head(live, *lines, method="POST", path=f"{door.prefix}/v2/customers"), body


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("arrives", ["at once", "head and body", "byte by byte"])
@pytest.mark.parametrize(
    "offer", [UPGRADE, ("upgrade:h2c", "connection:upgrade"), SOCKET[:1]], ids=str
)
def test_a_request_that_offers_another_protocol_keeps_its_body(
    live: Live, door: Door, offer: tuple[str, ...], arrives: str, framing: str
) -> None:
    """RFC 9110, 7.8: Java's HttpClient and Spring offer h2c with every request."""
    begin, body = new_customer(live, door, framing, *offer)
    pieces = {"at once": [begin + body], "head and body": [begin, body]}.get(arrives)
    with connect(live.port) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces or (bytes([byte]) for byte in begin + body):
            connection.sendall(piece)
        created = answer_on(connection)
        assert 201 == created.status, created.body
        connection.sendall(head(live))
        assert b"ok" in answer_on(connection).body


@pytest.mark.promise("body-is-no-request")
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("offer", [UPGRADE, SOCKET, ()], ids=str)
def test_a_body_is_never_read_as_the_next_request(
    live: Live, offer: tuple[str, ...], framing: str
) -> None:
    length, body = framed(head(live, path="/_sandbox/credentials") * 2, framing)
    sent = head(live, *offer, length, method="POST", path="/_sandbox/clock/advance")
    with connect(live.port) as connection:
        connection.sendall(sent + body)
        assert answer_on(connection).status in (400, 415)
        connection.sendall(head(live, "Connection: close"))
        assert 1 == rest_of(connection).count(b"HTTP/1.1 ")


@pytest.mark.parametrize("body", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_nothing_is_read_behind_connect(live: Live, body: bytes) -> None:
    sent = head(live, f"Content-Length: {len(body)}", method="CONNECT", path="/v2/plans") + body
    with connect(live.port) as connection:
        connection.sendall(sent)
        answer = answer_on(connection)
        refused(answer, 405, "method_not_allowed")
        assert ("close", b"") == (answer.header("connection"), rest_of(connection))


def test_an_answer_comes_in_one_packet() -> None:
    with Process("--scenario", "empty") as server, connect(server.port) as connection:
        connection.setblocking(False)
        for _ in range(300):
            connection.sendall(b"GET /_sandbox/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            first, _, body = what_comes_first(connection).partition(b"\r\n\r\n")
            assert b"content-length: %d" % len(body) in first


def what_comes_first(connection: socket.socket) -> bytes:
    """What is there to read, as soon as there is something."""
    while True:
        with suppress(BlockingIOError):
            return connection.recv(65_536)
