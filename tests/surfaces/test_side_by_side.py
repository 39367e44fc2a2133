"""Long work holds nobody up: while a world is made or judged, the others are served."""

import select
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from stub_server.engine import scheduler
from stub_server.engine.draft import Draft
from stub_server.engine.history import state_at
from stub_server.engine.scheduler import JOBS, Job
from stub_server.kernel.clock import DAY, parse_iso
from stub_server.kernel.slices import at_once

from ..engine.state import same, state
from ..support.live import FROZEN, NOW, Live, running
from ..support.wire import Door, answer_on, connect
from .conftest import door_to

pytestmark = pytest.mark.check

LARGE = "merchant: { name: Grande, city: Recife }\nmonths: 12\ncustomers: 400\norders: 2000\nprojects: 2\n"
SEVERAL = 10  # answers that somebody else gets meanwhile; a server that stands still gives one at most
WEBHOOKS = 15
SOME = 2  # the same while a world is judged, which is soon over


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server over a world that takes a while to make and to judge."""
    path = tmp_path_factory.mktemp("scenario") / "large.yaml"
    path.write_text(LARGE, encoding="utf-8")
    with running(replace(FROZEN, scenario=str(path))) as live:
        yield live


def served_meanwhile(live: Live, method: str, path: str, body: bytes, expected: int) -> int:
    """How many answers somebody else gets between a request and its answer."""
    door, count = door_to(live, "default"), 0
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
        ("POST", "/_sandbox/sandboxes", b'{"name":"made","seed":1}', 201),
        ("POST", "/s/another/_sandbox/reset", b'{"seed":2}', 200),
        ("GET", "/_sandbox/invariants", b"", 200),
    ],
    ids=["create", "reset", "invariants"],
)
def test_others_are_served_while_a_large_world_is_made_or_judged(
    large: Live, method: str, path: str, body: bytes, expected: int
) -> None:
    """They waited five seconds for a new world and ten for the invariants."""
    assert (SOME if method == "GET" else SEVERAL) <= served_meanwhile(large, method, path, body, expected)


@pytest.mark.promise("others-served-beside-jobs")
def test_others_are_served_while_a_sandbox_does_what_was_due(large: Live) -> None:
    """Its next request waits for a long night's jobs; one to another sandbox waited too, however long they took."""
    door_to(large, "night")
    world = large.app.sandboxes.entry("night").sandbox
    world.clock.wall, world.clock.frozen = (lambda: parse_iso(NOW) + 365 * DAY), False
    assert SEVERAL <= served_meanwhile(large, "GET", "/s/night/_sandbox/clock", b"", 200)
    assert parse_iso(NOW) + 365 * DAY == world.clock.now


def test_a_clock_that_goes_far_lets_others_be_served_by_time(large: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """They waited for two hundred jobs, however long each of them took: here a millisecond at least."""
    slow = {name: partial(_slowly, job) for name, job in JOBS.items()}
    monkeypatch.setattr(scheduler, "JOBS", slow)
    door = door_to(large, "far")
    for number in range(WEBHOOKS):
        hook = {"url": f"https://hooks{number}.example.com/", "events": ["order.expired"]}
        assert 201 == Door(large.port, "/s/far", door.token).send("POST", "/v2/webhooks", hook).status
    world = large.app.sandboxes.entry("far").sandbox
    before = world.log.number
    served = served_meanwhile(large, "POST", "/s/far/_sandbox/clock/advance", b'{"days":20}', 200)
    assert served > (world.log.number - before) / 25


def _slowly(job: Job, draft: Draft, subject: str) -> None:
    time.sleep(0.001)
    job(draft, subject)


def test_the_journal_is_searched_while_others_write(large: Live) -> None:
    """A request that came while a search waited for its turn made it a 500."""
    door = door_to(large, "searched")
    assert 200 == door.ask("GET", "/v2/plans?limit=1").status
    search = b"POST /s/searched/_sandbox/requests/verify HTTP/1.1\r\nHost: localhost\r\n"
    search += b"Content-Type: application/json\r\nContent-Length: 32\r\n\r\n" + b'{"request":{"path":"/v2/plans"}}'
    rows = b"GET /s/searched/_sandbox/requests HTTP/1.1\r\nHost: localhost\r\n\r\n"
    judge = b"GET /s/searched/_sandbox/invariants HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with ExitStack() as stack:
        waiting = [stack.enter_context(connect(large.port)) for _ in range(8)]
        for connection, sent in zip(waiting, [judge, search, judge, rows] * 2, strict=True):
            connection.sendall(sent)
        while any(not select.select([connection], [], [], 0)[0] for connection in waiting):
            assert 200 == door.ask("GET", "/v2/plans?limit=1").status
        statuses = [answer_on(connection).status for connection in waiting]
    assert {200} == set(statuses)


def test_a_mention_is_waited_for_by_itself_alone(tmp_path: Path) -> None:
    """And all who mention the same new world get the same one."""
    path = tmp_path / "large.yaml"
    path.write_text(LARGE, encoding="utf-8")
    with running(replace(FROZEN, scenario="empty")) as live:
        live.app.sandboxes.scenario = str(path)
        assert SEVERAL <= served_meanwhile(live, "GET", "/s/mentioned/_sandbox/credentials", b"", 200)
        live.app.sandboxes.scenario, live.app.sandboxes.seed = str(path), 5
        requests = [connect(live.port) for _ in range(4)]
        for connection in requests:
            connection.sendall(b"GET /s/together/_sandbox/credentials HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = [answer_on(connection).json() for connection in requests]
        for connection in requests:
            connection.close()
        assert 1 == len({answer["private_key"] for answer in told})
        assert 3 == len(live.app.sandboxes.sandboxes())


def test_a_world_that_is_judged_may_change_meanwhile(large: Live) -> None:
    """A copy is judged: a write in between breaks no law."""
    door = Door(large.port, "/s/written", door_to(large, "written").token)
    body, serial = b"", 0
    with connect(large.port) as connection:
        connection.sendall(b"GET /s/written/_sandbox/invariants HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not select.select([connection], [], [], 0)[0]:
            serial += 1
            assert 201 == door.send("POST", "/v2/projects", {"name": f"Clube {serial}"}).status
        answer = answer_on(connection)
    assert (200, True) == (answer.status, answer.json()["ok"]), body
    assert SOME <= serial


def test_a_past_that_is_looked_for_is_the_same_whatever_happens_meanwhile(large: Live) -> None:
    """Steps are undone one by one on a copy, and the world goes on between them."""
    door = Door(large.port, "/s/past", door_to(large, "past").token)
    world = large.app.sandboxes.entry("past").sandbox
    for number in range(6):
        assert 201 == door.send("POST", "/v2/projects", {"name": f"Antes {number}"}).status
    expected = state(at_once(state_at(world, 2, "past")))
    looking = state_at(world, 2, "past")
    next(looking)
    for number in range(3):
        assert 201 == door.send("POST", "/v2/projects", {"name": f"Depois {number}"}).status
    same(expected, state(at_once(looking)))


@pytest.mark.promise("no-cross-site-control")
@pytest.mark.parametrize(
    "headers",
    [
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")],
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")],
        [("Origin", "https://stranger.example"), ("Sec-Fetch-Site", "cross-site")],
        [("Origin", "https://stranger.example")],
        [("Origin", "null")],
    ],
)
def test_cross_site_requests_never_reach_the_control_surface(large: Live, headers: list[tuple[str, str]]) -> None:
    """A picture in a strange page had the server judge its world for ten seconds."""
    door = Door(large.port, "", "x")
    for method, path in (("GET", "/_sandbox/invariants"), ("POST", "/_sandbox/reset"), ("GET", "/_sandbox")):
        answer = door.ask(method, path, headers=headers, token=None)
        assert (403, "admin_key_required") == (answer.status, answer.json()["code"])
    assert 200 == door.ask("GET", "/_sandbox/health", headers=headers, token=None).status


@pytest.mark.parametrize("site", ["same-origin", "same-site", "none"])
def test_pages_and_address_bars_of_this_machine_do(large: Live, site: str) -> None:
    door = Door(large.port, "", "x")
    assert 200 == door.ask("GET", "/_sandbox/clock", headers=[("Sec-Fetch-Site", site)], token=None).status
