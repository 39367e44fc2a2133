"""The server that has a sandbox is slow, silent, odd or gone: its clients are answered all the
same, and soon.
"""

import asyncio
import json
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psycopg
import pytest

from stub_server.app import create_app
from stub_server.server.sandboxes.entry import Entry
from stub_server.settings import Settings
from stub_server.storage.database import Kept, Session

from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.postgres import Postgres
from ..support.processes import PATIENCE, Process
from ..support.wire import Answer, answer_on, connect, rest_of
from .conftest import FLAGS, Pair

pytestmark = [pytest.mark.check, pytest.mark.turn]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
Act = Callable[[socket.socket, bytes], None]


@dataclass(slots=True)
class Holder:
    """What is said to have the sandbox `odd`. It reads the head of each request, and acts."""

    port: int
    act: Act | None = None
    heads: list[bytes] = field(default_factory=list)


@contextmanager
def holding(database: str, name: str) -> Iterator[Holder]:
    """A holder of a sandbox, until the block ends."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        holder = Holder(listener.getsockname()[1])
        ((number,),) = connection.execute(
            "insert into processes (address, settings, until) "
            "values (%s, '{}', now() + interval '1 hour') returning id",
            (f"http://127.0.0.1:{holder.port}",),
        ).fetchall()
        connection.execute("update sandboxes set holder = %s where name = %s", (number, name))

        def serve(client: socket.socket) -> None:
            with client, suppress(OSError):
                while head := until_blank(client):
                    holder.heads.append(head)
                    assert holder.act is not None
                    holder.act(client, head)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(
                        target=serve, args=(listener.accept()[0],), daemon=True
                    ).start()

        threading.Thread(target=accept, daemon=True).start()
        yield holder
        listener.shutdown(socket.SHUT_RDWR)


def until_blank(client: socket.socket) -> bytes:
    """The head of a request, and what came with it; nothing at the end."""
    received = b""
    while b"\r\n\r\n" not in received:
        data = client.recv(65_536)
        if not data:
            return b""
        received += data
    return received


@pytest.fixture(scope="module")
def server(postgres: Postgres) -> Iterator[tuple[Process, Holder]]:
    """A server, and who has the sandbox that it is asked for."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        with Process("--store", url, *FLAGS) as first, first.control("odd") as control:
            control.get("/credentials").raise_for_status()
        process = stack.enter_context(Process("--store", url, *FLAGS))
        yield process, stack.enter_context(holding(url, "odd"))


def ask(process: Process, line: str = "GET", *headers: str, body: bytes = b"") -> Answer:
    """One request to the sandbox."""
    with connect(process.port) as connection:
        lines = [f"{line} /s/odd/v2/plans HTTP/1.1", "Host: localhost", *headers, "", ""]
        connection.sendall("\r\n".join(lines).encode() + body)
        return answer_on(connection, line)


def closes(client: socket.socket, head: bytes) -> None:
    """Hang up without an answer."""
    client.close()


def test_a_change_that_may_have_been_made_is_not_sent_again(server: tuple[Process, Holder]) -> None:
    process, holder = server
    holder.act = closes
    before = len(holder.heads)
    answer = ask(process, "POST", "Content-Length: 2", body=b"{}")
    assert (503, "store_unavailable", "1") == (
        answer.status,
        answer.json()["code"],
        answer.header("retry-after"),
    )
    assert 1 == len(holder.heads) - before


def sends(*pieces: bytes) -> Act:
    """Answer with these, a moment apart."""

    def act(client: socket.socket, head: bytes) -> None:
        for piece in pieces:
            client.sendall(piece)
            time.sleep(0.05)

    return act


@pytest.mark.parametrize(
    "answer",
    [
        b"no HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\x00: a\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
    ],
)
def test_what_is_no_answer_is_none(server: tuple[Process, Holder], answer: bytes) -> None:
    process, holder = server
    holder.act = sends(answer)
    assert 503 == ask(process, "POST", "Content-Length: 0").status


SIZE = 100 * 1024 * 1024
PIECE = b"x" * 65_536


def memory_of(process: Process) -> int:
    """The most that a process has had, in KiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def test_a_large_download_is_never_in_memory(server: tuple[Process, Holder]) -> None:
    process, holder = server

    def act(client: socket.socket, head: bytes) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % SIZE)
        for _ in range(SIZE // len(PIECE)):
            client.sendall(PIECE)

    holder.act = act
    before = memory_of(process)
    received = 0
    with connect(process.port) as connection:
        connection.sendall(
            b"GET /s/odd/v2/plans HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        time.sleep(0.5)  # a reader who is slower than the holder
        while data := connection.recv(1 << 20):
            received += len(data)
    assert received >= SIZE
    assert memory_of(process) - before < 10_000


@pytest.mark.promise("bodies-between-servers")
def test_a_large_upload_is_never_in_memory(server: tuple[Process, Holder]) -> None:
    process, holder = server
    received = 0

    def act(client: socket.socket, head: bytes) -> None:
        nonlocal received
        time.sleep(0.5)  # a holder that is slower than the client
        received = len(head.partition(b"\r\n\r\n")[2])
        while received < SIZE:
            received += len(client.recv(1 << 20))
        client.sendall(OK)

    holder.act = act
    before = memory_of(process)
    with connect(process.port) as connection:
        connection.sendall(
            b"POST /s/odd/v2/plans HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % SIZE
        )
        for _ in range(SIZE // len(PIECE)):
            connection.sendall(PIECE)
        assert 200 == answer_on(connection).status
    assert received == SIZE
    assert memory_of(process) - before < 10_000


def test_a_client_that_leaves_ends_its_request(server: tuple[Process, Holder]) -> None:
    process, holder = server
    left = threading.Event()

    def act(client: socket.socket, head: bytes) -> None:
        assert b"" == rest_of(client)
        left.set()

    holder.act = act
    with connect(process.port) as connection:
        connection.sendall(b"GET /s/odd/v2/plans HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.3)
    assert left.wait(PATIENCE)


@pytest.mark.promise("waiting-for-other-servers")
@pytest.mark.night
def test_those_who_wait_leave_room_for_others(postgres: Postgres) -> None:
    silent = threading.Event()
    with postgres.database() as url:
        with Process("--store", url, *FLAGS) as first, first.control("odd") as control:
            control.get("/credentials").raise_for_status()
        with (
            Process("--store", url, *FLAGS, "--max-connections", "16") as process,
            holding(url, "odd") as holder,
        ):

            def act(client: socket.socket, head: bytes) -> None:
                silent.wait(30)

            holder.act = act
            with ExitStack() as stack:
                waiting = [stack.enter_context(connect(process.port)) for _ in range(16)]
                for one in waiting:
                    one.sendall(b"GET /s/odd/v2/plans HTTP/1.1\r\nHost: localhost\r\n\r\n")
                refused: set[socket.socket] = set()
                while len(refused) < 4:  # the others have the places
                    answered, _, _ = select.select([*{*waiting} - refused], [], [], 30)
                    assert answered
                    assert {429} == {answer_on(one).status for one in answered}
                    refused.update(answered)
                with process.control("mine") as control:
                    assert 200 == control.get("/credentials").status_code
                silent.set()


# -- gone


@contextmanager
def two(postgres: Postgres) -> Iterator[tuple[Process, Process]]:
    """The first has the sandbox `team`."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        holder, other = (stack.enter_context(Process("--store", url, *FLAGS)) for _ in range(2))
        with holder.control("team") as control:
            control.get("/credentials").raise_for_status()
        yield holder, other


@pytest.mark.promise("waiting-for-other-servers")
def test_strangers_with_slow_bodies_leave_the_places_to_others(postgres: Postgres) -> None:
    """384 who began a body and sent no more had every place for 30 s, again and again."""
    head = b"POST /s/team/v2/plans HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        holder = stack.enter_context(Process("--store", url, *FLAGS))
        with holder.control("team") as control:
            control.get("/credentials").raise_for_status()
        few = "--store", url, *FLAGS, "--max-connections", "16"
        other = stack.enter_context(Process(*few))
        for _ in range(12):
            stack.enter_context(connect(other.port)).sendall(head)
        api = stack.enter_context(other.api("team"))
        assert 200 == api.get("/v2/plans").status_code


@pytest.mark.promise("hop-of-own-store")
def test_no_word_between_servers_is_in_the_journal(postgres: Postgres) -> None:
    """A fault rule may add any header to an answer."""
    with two(postgres) as (holder, other), other.api("team") as api:
        with holder.control("team") as control:
            dropped = {"match": {"operationId": "listPlans"}, "then": {"drop_connection": "after"}}
            created(control.post("/faults", json=dropped))
            with pytest.raises(httpx2.RemoteProtocolError):
                api.get("/v2/plans")
            (found,) = control.get("/requests", params={"operationId": "listPlans"}).json()[
                "requests"
            ]
            shown = control.get(f"/requests/{found['id']}").json()["request"]
        assert "x-sandbox-hop" not in json.dumps(shown)


def test_a_killed_holder_is_replaced_when_its_lease_ends(postgres: Postgres) -> None:
    with two(postgres) as (holder, other), other.api("team") as api:
        ident = created(api.post("/v2/customers", json=customer_body()))["customer"]["id"]
        holder.kill()
        began = time.monotonic()
        while (answer := api.get(f"/v2/customers/{ident}")).status_code != 200:
            assert (503, "store_unavailable") == (answer.status_code, answer.json()["code"])
            assert answer.headers["retry-after"]
            assert time.monotonic() - began < PATIENCE
        created(api.post("/v2/customers", json=customer_body()))


def test_a_server_that_is_about_to_stop_is_asked_once(postgres: Postgres) -> None:
    """What it was asked while it closes its connections would be cut off."""
    with postgres.database() as url, Process("--store", url, *FLAGS, "--log", "json") as holder:
        with holder.control("team") as control:
            control.get("/credentials").raise_for_status()
        with Process("--store", url, *FLAGS) as other, other.api("team") as api:
            holder.signal(signal.SIGTERM)
            while not holder.has_ended:
                assert 200 == api.get("/v2/customers").status_code
                time.sleep(0.05)
    answered = [json.loads(line).get("status") for line in holder.said().splitlines()]
    assert 200 in answered
    assert 1 == answered.count(503)


def test_none_is_refused_when_a_server_stops(postgres: Postgres) -> None:
    """Clients ask whichever server is ready, as behind a proxy; half of what they ask is held by
    the other one.
    """
    with two(postgres) as (holder, other), other.control("here") as control:
        control.get("/credentials").raise_for_status()
        ready = {holder.url: True, other.url: True}
        ended = threading.Event()
        headers = {}
        for name in ("team", "here"):
            with other.api(name) as api:
                headers[name] = dict(api.headers)

        def look() -> None:
            with httpx2.Client(timeout=5, verify=NO_TLS) as client:
                while not ended.is_set():
                    for url in ready:
                        with suppress(httpx2.HTTPError):
                            ready[url] = client.get(f"{url}/_sandbox/ready").status_code == 200
                    time.sleep(0.3)

        def use(place: int) -> list[int]:
            statuses: list[int] = []
            with httpx2.Client(timeout=20, verify=NO_TLS) as client:
                while not ended.is_set():
                    urls = [url for url, is_ready in ready.items() if is_ready]
                    name = ("team", "here")[len(statuses) % 2]
                    url = f"{urls[(len(statuses) + place) // 2 % len(urls)]}/s/{name}/v2/customers"
                    sent = headers[name] | {"connection": "close"} if place % 2 else headers[name]
                    if len(statuses) % 3:
                        statuses.append(client.get(url, headers=sent).status_code)
                    else:
                        statuses.append(
                            client.post(url, headers=sent, json=customer_body()).status_code
                        )
            return statuses

        with ThreadPoolExecutor(5) as pool:
            looking = pool.submit(look)
            using = [pool.submit(use, place) for place in range(4)]
            time.sleep(1)
            holder.signal(signal.SIGTERM)
            while not holder.has_ended:
                time.sleep(0.05)
            time.sleep(1)
            ended.set()
            looking.result()
            statuses = [status for one in using for status in one.result()]
        assert "" == holder.said()
        assert {200, 201} == set(statuses)
        assert len(statuses) > 200
        with other.api("team") as api, other.api("here") as mine:
            totals = [
                client.get("/v2/customers").json()["pagination"]["total"] for client in (api, mine)
            ]
        assert statuses.count(201) == sum(totals)


@pytest.mark.promise("others-served-beside-creation")
def test_a_sandbox_that_is_being_opened_delays_no_other(postgres: Postgres) -> None:
    """Opening a large one takes seconds; here it waits for a lock."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        flags = ("--store", url, *FLAGS)
        here, there, gone = (stack.enter_context(Process(*flags)) for _ in range(3))
        with gone.control("large") as control:
            control.get("/credentials").raise_for_status()
        gone.stop()
        with there.api("small") as api:
            token = api.headers["Authorization"]
            made = created(api.post("/v2/customers", json=customer_body()))["customer"]["id"]
        lock = stack.enter_context(psycopg.connect(url))
        lock.execute("lock table parts in access exclusive mode")
        pool = stack.enter_context(ThreadPoolExecutor(1))
        opening = pool.submit(httpx2.get, f"{here.url}/s/large/_sandbox/clock", timeout=PATIENCE)
        time.sleep(0.5)
        began = time.monotonic()
        for path in (f"/s/small/v2/customers/{made}", f"/v2/customers/{made}"):
            answer = httpx2.get(
                f"{here.url}{path}", headers={"Authorization": token}, timeout=PATIENCE
            )
            assert 200 == answer.status_code, answer.text
        assert time.monotonic() - began < 2
        assert not opening.done()
        lock.rollback()
        assert 200 == opening.result().status_code


def test_a_name_that_no_database_takes_is_unknown(pair: Pair) -> None:
    answer = httpx2.get(f"{pair.other.url}/s/a%00b/v2/plans", verify=NO_TLS)
    assert (404, "sandbox_not_found") == (answer.status_code, answer.json()["code"])


@pytest.mark.promise("rotation-one-several-servers-holds")
def test_a_sandbox_that_was_opened_under_a_lease_that_ended_is_opened_again(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server may have changed it: it answered as before, also to ended credentials."""
    with postgres.database() as url:
        with Process("--store", url, *FLAGS) as server:
            with server.control("moved") as control:
                control.get("/credentials").raise_for_status()
            server.stop()
        persistence = create_app(Settings(store=url)).sandboxes.persistence
        factory = persistence.factory
        store = persistence.store
        opened = list[str]()
        read = factory.open

        def slowly(session: Session, kept: Kept, holder: int) -> object:
            found = read(session, kept, holder)
            opened.append(kept.name)
            if len(opened) == 1:
                session.run("update processes set until = clock_timestamp() where id = ?", holder)
                end = time.monotonic() + PATIENCE
                while store.holder == holder and time.monotonic() < end:
                    time.sleep(0.05)
            return found

        monkeypatch.setattr(factory, "open", slowly)
        try:
            entry = asyncio.run(persistence.open("moved"))
        finally:
            persistence.close()
    assert isinstance(entry, Entry)
    assert ["moved", "moved"] == opened


def test_a_sandbox_that_was_made_under_a_lease_that_ended_is_not_served_as_it_was(
    postgres: Postgres,
) -> None:
    """Another server may have changed it by then: the one that made it answered without that."""
    flags = ("--host", "127.0.0.1", *FLAGS)
    with (
        postgres.database() as url,
        Process("--store", url, *flags) as here,
        here.control() as control,
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(url) as lock,
        psycopg.connect(url, autocommit=True) as other,
    ):
        lock.execute("lock table credentials in exclusive mode")
        making = pool.submit(control.post, "/sandboxes", json={"name": "made"})
        time.sleep(0.5)
        other.execute("update processes set until = clock_timestamp()")
        leases = "select count(*) from processes where until > clock_timestamp()"
        while other.execute(leases).fetchone() != (1,):
            time.sleep(0.05)
        lock.rollback()
        making.result()
        with Process("--store", url, *flags) as there, there.api("made") as api:
            made = created(api.post("/v2/customers", json=customer_body()))["customer"]["id"]
            headers = {"Authorization": api.headers["Authorization"]}
            address = f"{here.url}/s/made/v2/customers/{made}"
            assert 200 == httpx2.get(address, headers=headers, verify=NO_TLS).status_code
