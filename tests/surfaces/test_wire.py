"""Before a request is one: headers without end, trailers that would be headers, and bytes that are no HTTP at all."""

import socket
from contextlib import suppress
from typing import Any

import pytest

from stub_server.http.protocol import LARGEST_HEAD

from ..conftest import Serve
from ..support.live import Live
from ..support.refusal import refused
from ..support.wire import Answer, Door, answer_on, connect, rest_of

MANY = 64 * 1024 * 1024


def head(live: Live, *lines: str, size: int = 0, method: str = "GET", path: str = "/_sandbox/health") -> bytes:
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


def test_headers_of_64_kib_are_read(live: Live) -> None:
    sent = head(live, size=LARGEST_HEAD)
    assert len(sent) == LARGEST_HEAD == 65_536
    with connect(live.port) as connection:
        connection.sendall(sent)
        assert answer_on(connection).status == 200


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


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 70_000,
        b"GET / HTTP/1.1\r\n" + b"A:b\r\n" * 14_000,
        b"GET / HTTP/1.1\r\n" + b"a" * 70_000,
        b"\r\n" * 35_000,
    ],
    ids=["one value", "many headers", "one name", "blank lines"],
)
def test_headers_without_end_are_431_before_they_end(live: Live, sent: bytes) -> None:
    refused_and_hung_up(live, sent, 431, "headers_too_large")


def test_a_target_of_more_than_64_kib_is_414(live: Live) -> None:
    refused_and_hung_up(live, b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414, "uri_too_long")


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


def test_each_request_of_a_connection_has_the_whole_room(live: Live) -> None:
    with connect(live.port) as connection:
        for _ in range(3):
            connection.sendall(head(live, size=LARGEST_HEAD))
            assert answer_on(connection).status == 200


def test_many_requests_at_once_are_not_one_long_head(live: Live) -> None:
    """Pipelining: 80 KiB of requests, each of them short."""
    one, last = head(live), head(live, "Connection: close")
    count = 80 * 1024 // len(one)
    with connect(live.port) as connection:
        connection.sendall(one * count + last)
        assert rest_of(connection).count(b"HTTP/1.1 200 OK\r\n") == count + 1


@pytest.mark.parametrize(
    "fault", [b"no http at all\r\n\r\n", b"\r\n" * 70_000, b"GET / HTTP/1.1\r\nX:" + b"a" * 140_000]
)
def test_what_comes_before_a_fault_is_still_answered(live: Live, fault: bytes) -> None:
    with connect(live.port) as connection:
        connection.sendall(head(live) + fault)
        assert answer_on(connection).status == 200
        rest = rest_of(connection)  # a fault that is read together with the request closes, a later one is refused
        assert rest == b"" or rest.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 ")), rest


# -- what is no HTTP


TARGET, METHOD = "The request's target cannot be read.", "The request does not begin with an HTTP method"


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ("GET /v2/clientes/São-Paulo HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), TARGET),
        ("GET /v2/customers?name=João HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1"), TARGET),
        (b"GET /v2/\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", TARGET),
        (b"GET v2/plans HTTP/1.1\r\nHost: localhost\r\n\r\n", TARGET),
        (b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", TARGET),
        (b"GET /v2/plans?name=a b HTTP/1.1\r\nHost: localhost\r\n\r\n", "there must be HTTP/1.1"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", METHOD),
        (b"hello\r\n\r\n", METHOD),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2 is not supported."),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", "as HTTP/1.1: Invalid header token."),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "as HTTP/1.1: Duplicate Content-Length."),
    ],
    ids=[
        "UTF-8", "Latin-1", "control", "no slash", "CONNECT", "space", "TLS", "hello", "HTTP/2", "no colon",
        "two lengths",
    ],
)  # fmt: skip
def test_what_is_no_http_is_400_in_the_one_shape_and_told_what_is_wrong(live: Live, sent: bytes, told: str) -> None:
    """uvicorn answers in a text of its own."""
    assert told in refused_and_hung_up(live, sent, 400, "malformed_request")["message"]


def test_a_body_longer_than_its_length_is_told_as_what_it_may_be(live: Live) -> None:
    """What is left of it is read as the next request; its method is none."""
    with connect(live.port) as connection:
        lines = ("Content-Type: application/json", "Content-Length: 2")
        connection.sendall(head(live, *lines, method="POST", path="/s/wire-body/_sandbox/reset") + b"{}")
        assert 200 == answer_on(connection).status
        connection.sendall(b'"name": "Rui"}')
        assert "Content-Length" in refused(answer_on(connection), 400, "malformed_request")["message"]


HERE = b"\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"FOO /v2/plans HTTP/1.1" + HERE, 501, "not_implemented"),
        (b"get /v2/plans HTTP/1.1" + HERE, 501, "not_implemented"),
        (b"TRACE /v2/plans HTTP/1.1" + HERE, 405, "method_not_allowed"),
        (b"QUERY /v2/plans HTTP/1.1" + HERE, 405, "method_not_allowed"),
        (b"CONNECT /v2/plans HTTP/1.1" + HERE, 405, "method_not_allowed"),
        (b"POST /v2/plans HTTP/1.1" + HERE + b"Transfer-Encoding: gzip, chunked\r\n", 501, "not_implemented"),
        (
            b"POST /v2/plans HTTP/1.1" + HERE + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            400,
            "malformed_request",
        ),
        (b"GET /v2/plans HTTP/2.0" + HERE, 505, "http_version_not_supported"),
        (b"GET /v2/plans HTTP/1.2" + HERE, 505, "http_version_not_supported"),
        (b"GET /v2%2Fplans HTTP/1.1" + HERE, 404, "route_not_found"),
        (b"GET /v2%2fplans HTTP/1.1" + HERE, 404, "route_not_found"),
        (b"GET /v2/plans HTTP/1.1\r\n", 400, "malformed_request"),
        (b"GET http://localhost/v2/plans HTTP/1.1\r\n", 400, "malformed_request"),
        (b"GET http://evil.example/v2/plans HTTP/1.1" + HERE, 403, "host_not_allowed"),
        (b"GET http://evil.example HTTP/1.1" + HERE, 403, "host_not_allowed"),
        (b"GET ftp://evil.example/v2/plans HTTP/1.1" + HERE, 403, "host_not_allowed"),
        (b"GET http://localhost@evil.example/ HTTP/1.1" + HERE, 403, "host_not_allowed"),
        (b"GET http://localhost/v2/plans HTTP/1.1\r\nHost: evil.example\r\n", 401, "missing_credentials"),
        (b"GET http://localhost?a=b HTTP/1.1\r\nHost: evil.example\r\n", 200, None),
        (b"GET /_sandbox/health HTTP/1.0\r\n", 200, None),
    ],
    ids=lambda value: value.decode().partition("\r")[0] if isinstance(value, bytes) else str(value),
)
def test_the_head_is_read_as_http_says(live: Live, sent: bytes, status: int, code: str | None) -> None:
    """RFC 9110, RFC 9112 3.2: methods, versions, transfer codings, the Host and the authority of a target."""
    with connect(live.port) as connection:
        connection.sendall(sent + b"\r\n" + (b"0\r\n\r\n" if b"chunked" in sent else b""))
        answer = answer_on(connection)
        assert status == answer.status
        if code is not None:
            refused(answer, status, code)


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
    ],
)
def test_a_header_that_decides_comes_once(live: Live, name: str) -> None:
    """Of two the last one won, whichever a proxy had looked at."""
    with connect(live.port) as connection:
        connection.sendall(head(live, f"{name}: a", f"{name.lower()}: b", path="/_sandbox/clock"))
        assert name in refused(answer_on(connection), 400, "malformed_request")["message"]


def test_who_waits_to_send_a_body_that_is_refused_is_hung_up_on(live: Live, door: Door) -> None:
    """The client need not send the body then: what it sent next was read as that body, and never answered."""
    lines = ("Expect: 100-continue", "Content-Type: application/json", "Content-Length: 2000000")
    for credential, status, code in (("x", 401, "invalid_token"), (door.token, 413, "payload_too_large")):
        path = f"{door.prefix}/v2/customers"
        sent = head(live, f"Authorization: Bearer {credential}", *lines, method="POST", path=path)
        refused_and_hung_up(live, sent, status, code)


def test_a_compressed_body_is_refused_with_the_coding_that_is_read(live: Live, door: Door) -> None:
    answer = door.ask("POST", "/v2/customers", b"{}", headers=[("Content-Encoding", "gzip")])
    refused(answer, 415, "unsupported_media_type")
    assert "identity" == answer.header("accept-encoding")


@pytest.mark.parametrize("path", ["/v2/customers", "/openapi.json", "/_sandbox/clock"])
def test_allow_names_what_is_served(live: Live, path: str) -> None:
    door = Door(live.port, "", "x")
    allowed = door.ask("DELETE", path).header("allow") or ""
    assert {"GET", "HEAD", "OPTIONS"} <= set(allowed.split(", "))
    assert allowed == door.ask("OPTIONS", path).header("allow")


def test_if_match_is_ignored_with_a_warning(live: Live, door: Door) -> None:
    answer = door.ask("GET", "/v2/customers", headers=[("If-Match", '"x"')])
    assert (200, "if_match_ignored") == (answer.status, answer.header("x-sandbox-warnings"))


# -- trailers


def trailing(live: Live, *trailers: str, lines: tuple[str, ...] = (), path: str = "/_sandbox/clock") -> Answer:
    """A request whose chunked body ends with trailers, in one piece: they have come before it is handled."""
    sent = head(live, "Transfer-Encoding: chunked", "Content-Type: application/json", *lines, path=path)
    body = "2\r\n{}\r\n0\r\n" + "".join(f"{line}\r\n" for line in trailers) + "\r\n"
    with connect(live.port) as connection:
        connection.sendall(sent + body.encode())
        answer = answer_on(connection)
        connection.sendall(head(live))
        assert answer_on(connection).status == 200, "the connection goes on"
        return answer


def test_an_admin_key_in_a_trailer_opens_nothing(serve: Serve) -> None:
    live = serve(admin_key="a-long-admin-key")
    key = "X-Sandbox-Admin-Key: a-long-admin-key"
    assert trailing(live, lines=(key,)).status == 200
    refused(trailing(live, key), 403, "admin_key_required")


def test_a_credential_in_a_trailer_is_none(live: Live, door: Door) -> None:
    credential = f"Authorization: Bearer {door.token}"
    path = f"{door.prefix}/v2/customers"
    assert trailing(live, lines=(credential,), path=path).status == 200
    refused(trailing(live, credential, path=path), 401, "missing_credentials")


def test_a_trailer_overrides_no_header(live: Live, door: Door) -> None:
    credential = f"Authorization: Bearer {door.token}"
    path = f"{door.prefix}/v2/customers"
    answer = trailing(live, "Authorization: Bearer x", "Host: evil.example", lines=(credential,), path=path)
    assert answer.status == 200


@pytest.mark.parametrize(
    "start", [b"0\r\nX-Long: ", b"1;extension=", b"1\r\n{\r\n0\r\n" + b"A:b\r\n" * 14_000 + b"X: "]
)
def test_trailers_and_chunk_extensions_without_end_are_cut_off(live: Live, door: Door, start: bytes) -> None:
    """A credential is asked for first; behind it they would be read to the end as headers were."""
    sent = head(
        live,
        f"Authorization: Bearer {door.token}",
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
        method="POST",
        path=f"{door.prefix}/v2/customers",
    )
    refused_and_hung_up(live, sent + start + b"a" * 2 * LARGEST_HEAD, 431, "headers_too_large")


# -- other protocols


UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
SOCKET = ("Connection: Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA==")


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


def test_who_offers_http_2_is_answered_in_http_1(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """As often as he likes: curl --http2 does so with every request."""
    with connect(live.port) as connection:
        connection.sendall(head(live, *UPGRADE) * 600 + head(live, "Connection: close"))
        assert 601 == rest_of(connection).count(b"HTTP/1.1 200 OK")
    assert [] == caplog.messages


@pytest.mark.parametrize("framing", ["Content-Length: {}", "Transfer-Encoding: chunked"])
def test_a_body_beside_an_offer_is_never_read_as_the_next_request(live: Live, framing: str) -> None:
    """The parser leaves it alone, as if it were of the other protocol."""
    body = head(live, path="/_sandbox/credentials")
    sent = head(live, *UPGRADE, framing.format(len(body)), method="POST", path="/_sandbox/clock/advance")
    refused_and_hung_up(live, sent + body, 400, "malformed_request")
    with connect(live.port) as connection:
        connection.sendall(sent)
        refused(answer_on(connection), 400, "malformed_request")
        with suppress(OSError):
            connection.sendall(body)
        assert b"" == rest_of(connection)


def test_what_is_no_http_is_not_told_on_the_terminal(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    refused_and_hung_up(live, b"nonsense\r\n\r\n", 400, "malformed_request")
    assert [] == caplog.messages
