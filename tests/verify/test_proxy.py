"""The proxy passes on what comes, byte for byte, and judges it afterwards."""

import gzip
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import IncompleteRead
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import orjson
import pytest

from stub_server.tools.verify.exchange import Answer as ExchangeAnswer
from stub_server.tools.verify.exchange import Exchange, Request
from stub_server.tools.verify.observed import Watching, readable
from stub_server.tools.verify.outcome import of_recorded

from ..support.estate import Estate
from ..support.forked import Popen
from ..support.live import NO_TLS
from ..support.processes import free_port
from ..support.requests import OPERATIONS, ask, path_of
from ..support.wire import Answer, answer_on
from .bad import speaking
from .exchanges import example
from .scripted import Proxied, connected, proxying, received

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: r1\r\n"
PAGE = orjson.dumps(example("CustomerPage"))
ASKED = b"GET /v2/customers HTTP/1.1\r\nHost: localhost\r\n\r\n"


def sized(body: bytes, head: bytes = OK) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def answering(*answers: bytes) -> Callable[[socket.socket], None]:
    """A target that gives these answers, to a request each."""

    def play(connection: socket.socket) -> None:
        for each in answers:
            received(connection)
            connection.sendall(each)

    return play


def own(proxied: Proxied, path: str, host: str = "localhost", more: str = "") -> Answer:
    """What the proxy itself answers."""
    head = f"GET /_proxy/{path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"
    return asked(proxied, head.encode())


def classes(proxied: Proxied, last: str = "/") -> list[tuple[str, list[str]]]:
    """What was judged, once the newest path begins so."""
    deadline = time.monotonic() + 10
    while True:
        entries = own(proxied, "exchanges").json()["log"]["entries"]
        rows = [(urlsplit(each["request"]["url"]).path, each["_classes"]) for each in entries]
        if (rows and rows[-1][0].startswith(last)) or time.monotonic() > deadline:
            return rows
        time.sleep(0.01)


def asked(proxied: Proxied, data: bytes) -> Answer:
    """The answer to bytes."""
    with connected(proxied) as client:
        client.sendall(data)
        return answer_on(client)


@contextmanager
def saying(answer: bytes, end: bytes = b"\r\n\r\n") -> Iterator[Proxied]:
    """A proxy in front of a target that says the same to each request, once it ends so."""

    def play(connection: socket.socket) -> None:
        received(connection, end)
        connection.sendall(answer)

    with speaking(play) as target, proxying(target) as proxied:
        yield proxied


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_compressed_answer_is_passed_on_compressed_and_judged_as_it_reads(coding: str) -> None:
    package = pytest.importorskip(
        {"gzip": "gzip", "br": "brotli", "zstd": "backports.zstd"}[coding]
    )
    packed = package.compress(orjson.dumps(example("CustomerPage") | {"extra": 1}))
    with saying(sized(packed, OK + b"Content-Encoding: %b\r\n" % coding.encode())) as proxied:
        assert packed == asked(proxied, ASKED).body
        assert [("/v2/customers", ["undocumented-field"])] == classes(proxied)


def test_a_stream_comes_as_it_is_sent() -> None:
    """The first event is there before the second is sent."""
    goes_on = threading.Event()

    def play(connection: socket.socket) -> None:
        received(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        assert goes_on.wait(30)
        connection.sendall(b"data: 2\n\n")

    with speaking(play) as target, proxying(target) as proxied, connected(proxied) as client:
        client.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"data: 1\n\n" in received(client, b"data: 1\n\n")
        goes_on.set()
        assert b"data: 2\n\n" in received(client, b"data: 2\n\n")


def test_head_and_a_redirect_are_passed_on_and_nothing_is_followed() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /v2/plans\r\nContent-Length: 0\r\n\r\n"
    play = answering(OK + b"Content-Length: 4711\r\n\r\n", moved)
    with speaking(play) as target, proxying(target) as proxied, connected(proxied) as client:
        client.sendall(b"HEAD /v2/customers HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"content-length: 4711" in received(client).lower()
        client.sendall(ASKED)
        assert ("/v2/plans", 302) == ((found := answer_on(client)).header("location"), found.status)
    divergences = proxied.watching.finish().divergences
    assert [("undocumented-status", "listCustomers")] == [
        (each.kind, each.operations[0]) for each in divergences
    ]


def test_a_large_body_is_passed_on_and_not_judged() -> None:
    large = b" " * 3_000_000 + PAGE
    with saying(sized(large)) as proxied:
        assert large == asked(proxied, ASKED).body
    report = proxied.watching.finish()
    assert ([], 0, 1) == (
        report.divergences,
        report.requests,
        sum(proxied.watching.unjudged.values()),
    )
    assert "not judged" in proxied.lines[0]


def test_a_small_answer_that_unpacks_to_gigabytes_is_not_unpacked() -> None:
    """400 kB are 400 MB; and packed twice, 2 kB are."""
    packing, zeros = zlib.compressobj(9, wbits=31), bytes(1_000_000)
    packed = b"".join(packing.compress(zeros) for _ in range(400)) + packing.flush()
    tracemalloc.start()
    try:
        for coding, body in (("gzip", packed), ("gzip, gzip", gzip.compress(packed))):
            answer = ExchangeAnswer(200, (("Content-Encoding", coding),), body)
            assert isinstance(readable(Exchange(Request("GET", "/v2/customers"), answer)), str)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_what_waits_to_be_judged_is_bounded_in_bytes() -> None:
    goes_on = threading.Event()

    def say(line: str) -> None:
        assert goes_on.wait(30)

    watching = Watching("http://127.0.0.1", say)
    large = ExchangeAnswer(200, body=bytes(100 * 1024 * 1024))
    for _ in range(6):  # one is being judged, three wait
        watching.passed(Exchange(Request("GET", "/v2/nowhere"), large))
    goes_on.set()
    watching.finish()
    assert watching.unjudged["more requests than could be judged"] >= 2


def test_what_is_kept_of_exchanges_that_depart_is_bounded_in_bytes() -> None:
    """A whole exchange of each way to depart, for the proof of an overlay."""
    watching, space = Watching("http://127.0.0.1", lambda line: None), b" " * 1_000_000
    request, headers = Request("GET", "/v2/customers"), (("Content-Type", "application/json"),)
    tracemalloc.start()
    try:
        for number in range(60):
            body = orjson.dumps(example("CustomerPage") | {f"extra{number}": 1}) + space
            watching.passed(Exchange(request, ExchangeAnswer(200, headers, body)))
        report = watching.finish()
        assert tracemalloc.get_traced_memory()[0] < 32 * 1024 * 1024
    finally:
        tracemalloc.stop()
    assert 60 == report.requests


def test_two_megabytes_of_empty_frames_are_read_in_time() -> None:
    zstd = pytest.importorskip("backports.zstd")
    frame = zstd.compress(b"")
    answer = ExchangeAnswer(200, (("Content-Encoding", "zstd"),), frame * (2_000_000 // len(frame)))
    began = time.process_time()
    assert isinstance(readable(Exchange(Request("GET", "/v2/customers"), answer)), Exchange)
    assert time.process_time() - began < 5


def test_a_name_that_was_rebound_to_this_machine_reaches_no_backend() -> None:
    with saying(sized(b"{}")) as proxied:
        answer = asked(proxied, ASKED.replace(b"localhost", b"evil.example:4601"))
    assert (403, "forbidden") == (answer.status, answer.json()["code"])


def test_a_target_that_is_away_is_said_to_be_so() -> None:
    with proxying(f"http://127.0.0.1:{free_port()}") as proxied:
        found = asked(proxied, ASKED)
        assert (502, True) == (found.status, found.json()["error"])
    assert ["transport"] == [each.kind for each in proxied.watching.finish().divergences]


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 99\r\n\r\n{",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"X-Odd: a\x01b\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_an_answer_that_breaks_off_breaks_off_for_the_client_too(rest: bytes) -> None:
    with saying(OK + rest) as proxied, pytest.raises((IncompleteRead, ConnectionError)):
        asked(proxied, ASKED)
    assert ["transport"] == [each.kind for each in proxied.watching.finish().divergences]


def test_what_was_seen_is_for_this_machine_and_without_secrets() -> None:
    said = sized(b'{"seen": "hidden-1", "private_key": "hidden-2", "name": "Lena"}')
    with saying(said, b"}") as proxied:
        sent = b'{"password": "hidden-4"}'
        head = (
            b"POST /api-keys?token=hidden-3 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer"
            b" hidden-1\r\n"
        )
        asked(proxied, sized(sent, head))
        assert ["/api-keys"] == [path for path, _ in classes(proxied)]
        shown = own(proxied, "exchanges").body
        assert b"hidden" not in shown
        assert b"Lena" in shown
        assert 403 == own(proxied, "exchanges", host="evil.example").status
        assert 403 == own(proxied, "exchanges", more="Origin: http://evil.example\r\n").status
        elsewhere = "Sec-Fetch-Site: cross-site\r\n"  # an image has no Origin
        assert 403 == own(proxied, "exchanges", more=elsewhere).status
        assert "hidden" not in "".join(proxied.lines)


def test_the_sandbox_does_not_diverge_and_its_archive_says_the_same(
    home: Estate, tmp_path: Path
) -> None:
    """The sandbox behind the proxy, one request of each read; then the archive of the same traffic
    is judged.
    """
    reads = [operation for operation in OPERATIONS.values() if operation.method == "GET"]
    with proxying(address_of(home)) as proxied:
        address = f"http://127.0.0.1:{proxied.port}"
        with httpx2.Client(base_url=address, headers=home.api.headers, verify=NO_TLS) as api:
            for operation in reads:
                ask(api, operation, home.ids)
        assert len(reads) <= len(classes(proxied, last=path_of(reads[-1], home.ids)))
        archive = tmp_path / "seen.har"
        archive.write_bytes(own(proxied, "exchanges").body)
        assert 404 == own(proxied, "other").status
    report = proxied.watching.finish()
    assert [] == report.divergences
    again = of_recorded(archive, address_of(home), (), ())
    assert (report.requests, report.coverage.rows, report.divergences) == (
        again.requests,
        again.coverage.rows,
        again.divergences,
    )


def address_of(home: Estate) -> str:
    return f"{home.live.url}/s/{home.sandbox}"


@contextmanager
def commanded(target: str, *words: str) -> Iterator[tuple[str, Popen]]:
    """The command in front of a target: its address, and the process.

    The block ends with Ctrl-C.
    """
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "stub_server",
        "proxy",
        target,
        "--port",
        str(port),
        "--fail",
        *words,
    ]
    with Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert str(port) in running.stdout.readline()
        yield f"http://127.0.0.1:{port}", running


@pytest.mark.check
def test_the_command_serves_until_it_is_interrupted_and_reports(
    home: Estate, tmp_path: Path
) -> None:
    report, overlay = tmp_path / "report.json", tmp_path / "overlay.yaml"
    words = ("--report", f"json={report}", "--write-overlay", str(overlay))
    with (
        commanded(home.live.url, *words) as (address, running),
        httpx2.Client(verify=NO_TLS) as client,
    ):
        assert 401 == client.get(f"{address}/v2/customers").status_code
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=60)
    assert 0 == running.returncode, said
    assert "/v2/customers" in said
    assert "overlay: 1.0.0" in overlay.read_text()
    found = json.loads(report.read_text())
    assert ("proxy", 1, []) == (found["mode"], found["requests"], found["divergences"])


@pytest.mark.check
@pytest.mark.parametrize(
    ("coding", "reason"),
    [("", "no request of the contract"), ("x-secret", "1 (a body encoded as x-secret)")],
)
def test_the_command_fails_with_3_if_nothing_was_judged(coding: str, reason: str) -> None:
    play = answering(sized(PAGE, OK + f"Content-Encoding: {coding}\r\n".encode()))
    with speaking(play) as target, commanded(target) as (address, running):
        if coding:
            with socket.create_connection(
                ("127.0.0.1", int(address.rpartition(":")[2])), timeout=30
            ) as client:
                client.sendall(ASKED)
                assert PAGE == answer_on(client).body
        running.send_signal(signal.SIGTERM)
        said, told = running.communicate(timeout=60)
    assert 3 == running.returncode, said
    assert f"Nothing was judged: {reason}." in told
