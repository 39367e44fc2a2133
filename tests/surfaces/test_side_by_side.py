"""Long work holds nobody up: while a world is made or judged, the others are served."""

import json
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from stub_server.core import slices
from stub_server.core.clock import DAY, ClockState, parse_iso, wall_ms
from stub_server.server.server import FOR_ANYBODY

from ..support.live import FROZEN, NOW, Live, running
from ..support.processes import Process
from ..support.wire import Door, answer_on, connect
from .conftest import door_to

pytestmark = [pytest.mark.check, pytest.mark.turn]

LARGE = (
    "merchant: { name: Grande, city: Recife }\nmonths: 12\ncustomers: 400\norders:"
    " 2000\nprojects: 2\n"
)
# answers that somebody else gets meanwhile: a server that stands still gives one at most, on any
# machine
SEVERAL = 2


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server over a world that takes a while to make and to judge."""
    path = tmp_path_factory.mktemp("scenario") / "large.yaml"
    path.write_text(LARGE, encoding="utf-8")
    with running(replace(FROZEN, scenario=str(path))) as live:
        yield live


def served_meanwhile(live: Live, method: str, path: str, body: bytes, expected: int) -> int:
    """How many answers somebody else gets between a request and its answer."""
    door = door_to(live, "default")
    count = 0
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with connect(live.port) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        while not select.select([connection], [], [], 0)[0]:
            assert 200 == door.ask("GET", "/v2/customers?limit=1").status
            count += 1
        assert expected == answer_on(connection, method).status
    return count


@pytest.mark.promise("others-served-beside-creation")
@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/_sandbox/sandboxes", b'{"name":"made-#","seed":1}', 201),
        ("POST", "/s/another/_sandbox/reset", b'{"seed":2}', 200),
        ("GET", "/_sandbox/invariants", b"", 200),
    ],
    ids=["create", "reset", "invariants"],
)
def test_others_are_served_while_a_large_world_is_made_or_judged(
    large: Live, method: str, path: str, body: bytes, expected: int
) -> None:
    """They waited five seconds for a new world and ten for the invariants.

    What is soon over is tried again.
    """
    bodies = (body.replace(b"#", b"%d" % number) for number in range(5))
    assert any(SEVERAL <= served_meanwhile(large, method, path, each, expected) for each in bodies)


@pytest.fixture(scope="module")
def apart() -> Iterator[Process]:
    """A server in a process of its own, which does not wait for who asks it."""
    with Process() as server:
        yield server


def answered_before_another(
    server: Process,
    of: Door,
    method: str,
    path: str,
    statuses: set[int],
    body: bytes = b"",
    delay: int = 0,
) -> int:
    """How many of forty requests to one sandbox, whose answers wait for a delay (ms), are answered
    during the first one to another that any is answered beside.
    """
    head = f"{method} {of.prefix}{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {of.token}"
    head += f"\r\nX-Sandbox-Delay: {delay}; after"
    if body:
        head += f"\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    busy = f"{head}\r\n\r\n".encode() + body
    door = door_to(server, "quiet")
    connections = [connect(server.port) for _ in range(40)]
    for connection in connections:
        connection.sendall(busy[:-1])
    for connection in connections:
        connection.sendall(busy[-1:])
    answered: list[socket.socket] = []
    while not answered:
        assert 200 == door.ask("GET", "/v2/orders?search=nobody").status
        answered = select.select(connections, [], [], 0)[0]
    assert statuses >= {answer_on(connection).status for connection in connections}
    for connection in connections:
        connection.close()
    return len(answered)


@pytest.mark.promise("nothing-request-costs-more-length")
def test_many_searches_of_one_sandbox_delay_none_of_another(
    large: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each search of a sandbox had its turn before the only one of another."""
    monkeypatch.setattr(slices, "SLICE", 0.00001)
    monkeypatch.setattr(slices, "AT_ONCE", 1)
    doors = door_to(large, "busy"), door_to(large, "quiet")
    busy, quiet = (
        f"GET {door.prefix}/v2/orders?search=nobody HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {door.token}\r\n\r\n".encode()
        for door in doors
    )
    connections = [connect(large.port) for _ in range(40)]
    with connect(large.port) as alone:
        for number, connection in enumerate(connections):
            connection.sendall(busy)
            if number == 4:
                alone.sendall(quiet)
        assert 200 == answer_on(alone).status
    answered = select.select(connections, [], [], 0)[0]
    assert {200} == {answer_on(connection).status for connection in connections}
    for connection in connections:
        connection.close()
    assert len(answered) < 20


@pytest.fixture(scope="module")
def wordy(apart: Process) -> Door:
    """A sandbox whose first page of projects has 11 MB."""
    door = door_to(apart, "wordy")
    texts = {f"{number:02}" * 15: "\u001fé" * 125 for number in range(50)}
    kinds = ("business", "marketing", "content", "notification")
    maps = {f"{kind}_settings": texts for kind in kinds} | {"metadata": texts}
    for number in range(100):
        assert 201 == door.send("POST", "/v2/projects", {"name": f"Longo {number}", **maps}).status
    return door


@pytest.mark.promise("nothing-request-costs-more-length")
def test_many_long_answers_of_one_sandbox_delay_none_of_another(
    apart: Process, wordy: Door
) -> None:
    """None took 50 ms, and four hundred at once held up the others for fifteen seconds."""
    assert answered_before_another(apart, wordy, "GET", "/v2/projects?limit=100", {200, 429}) < 20


def test_long_answers_that_nobody_reads_are_limited(apart: Process, wordy: Door) -> None:
    """Four hundred took 4.5 GB."""
    request = (
        f"GET {wordy.prefix}/v2/projects?limit=100 HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {wordy.token}\r\n\r\n"
    )
    with ExitStack() as unread:
        statuses = []
        for _ in range(FOR_ANYBODY + 4):
            connection = unread.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", apart.port))
            connection.sendall(request.encode())
            statuses.append(connection.recv(12)[9:])
    assert [b"200"] * FOR_ANYBODY + [b"429"] * 4 == statuses


@pytest.mark.promise("nothing-request-costs-more-length")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v2/customers", {"name": "Ana", "phones": [{"a": 1, "b": [1, 2]}] * 9_000}),
        ("/api-keys", {"name": "Chave", "allowed_ips": [f"1.2.3.{n}/33" for n in range(900)]}),
    ],
    ids=["long", "wrong in many places"],
)
def test_many_refused_bodies_of_one_sandbox_delay_none_of_another(
    apart: Process, path: str, body: object
) -> None:
    """They are read and refused a few at a time."""
    busy = door_to(apart, "refused-bodies")
    sent = json.dumps(body).encode()
    assert answered_before_another(apart, busy, "POST", path, {422}, sent) < 20


SUSPECT = b'{"secret":"x","a":[' + b'"name":"authorization",' * 10_000 + b"1]}"


@pytest.mark.promise("nothing-request-costs-more-length")
def test_many_long_bodies_of_strangers_delay_nobody(apart: Process) -> None:
    """They are refused unread, and searched for secrets all the same."""
    stranger = replace(door_to(apart, "team"), token="none")
    assert answered_before_another(apart, stranger, "POST", "/v2/orders", {401}, SUSPECT) < 20


@pytest.mark.promise("nothing-request-costs-more-length")
def test_many_answers_after_a_delay_delay_none_of_another(apart: Process) -> None:
    """Their delays end together."""
    assert 20 > answered_before_another(
        apart, door_to(apart, "late"), "POST", "/v2/orders", {400}, SUSPECT, 900
    )


@pytest.mark.promise("others-served-beside-jobs")
def test_others_are_served_while_a_sandbox_does_what_was_due(large: Live) -> None:
    """Its next request waits for a long night's jobs; one to another sandbox waited too, however
    long they took.
    """
    door_to(large, "night")
    world = large.app.sandboxes.entry("night").sandbox
    morning = parse_iso(NOW) + 365 * DAY
    world.clock.set(ClockState(world.clock.now, morning - wall_ms(), frozen=False))
    assert SEVERAL <= served_meanwhile(large, "GET", "/s/night/_sandbox/clock", b"", 200)
    assert morning <= world.clock.now


def test_a_mention_is_waited_for_by_itself_alone(tmp_path: Path) -> None:
    """And all who mention the same new world get the same one."""
    path = tmp_path / "large.yaml"
    path.write_text(LARGE, encoding="utf-8")
    with running(replace(FROZEN, scenario="empty")) as live:
        factory = live.app.sandboxes.factory
        factory.settings = replace(factory.settings, scenario=str(path))
        assert SEVERAL <= served_meanwhile(
            live, "GET", "/s/mentioned/_sandbox/credentials", b"", 200
        )
        factory.settings = replace(factory.settings, seed=5)
        requests = [connect(live.port) for _ in range(4)]
        for connection in requests:
            connection.sendall(
                b"GET /s/together/_sandbox/credentials HTTP/1.1\r\nHost: localhost\r\n\r\n"
            )
        told = [answer_on(connection).json() for connection in requests]
        for connection in requests:
            connection.close()
        assert 1 == len({answer["private_key"] for answer in told})
        assert 3 == len(live.app.sandboxes.sandboxes())


@pytest.mark.promise("no-cross-site-control")
@pytest.mark.parametrize(
    "headers",
    [
        [
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Mode", "no-cors"),
            ("Sec-Fetch-Dest", "image"),
        ],
        [
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Mode", "navigate"),
            ("Sec-Fetch-Dest", "iframe"),
        ],
        [("Origin", "https://stranger.example"), ("Sec-Fetch-Site", "cross-site")],
        [("Origin", "https://stranger.example")],
        [("Origin", "null")],
    ],
)
def test_cross_site_requests_never_reach_the_control_surface(
    large: Live, headers: list[tuple[str, str]]
) -> None:
    """A picture in a strange page had the server judge its world for ten seconds."""
    door = Door(large.port, "", "x")
    for method, path in (
        ("GET", "/_sandbox/invariants"),
        ("POST", "/_sandbox/reset"),
        ("GET", "/_sandbox"),
    ):
        answer = door.ask(method, path, headers=headers, token=None)
        assert (403, "admin_key_required") == (answer.status, answer.json()["code"])
    assert 200 == door.ask("GET", "/_sandbox/health", headers=headers, token=None).status


@pytest.mark.parametrize("site", ["same-origin", "same-site", "none"])
def test_pages_and_address_bars_of_this_machine_do(large: Live, site: str) -> None:
    door = Door(large.port, "", "x")
    assert (
        200
        == door.ask("GET", "/_sandbox/clock", headers=[("Sec-Fetch-Site", site)], token=None).status
    )
