"""Receivers that never answer: whatever waits for them, others are told at once."""

import asyncio
import socket
import threading
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import replace

import pytest

from stub_server.calls import server as calls_server
from stub_server.delivery import courier, posting
from stub_server.delivery.posting import IN_ALL, UNPROVED, Places
from stub_server.http.monitor import Limits
from stub_server.operations import webhooks

from ..support.live import FROZEN, running
from ..support.make import created
from ..support.receiver import Received, Receiver, receiving
from ..support.wire import answer_on, connect
from .hooks import CREATED, WEBHOOKS, arrived, clients, drain, event

pytestmark = pytest.mark.check

EMPTY = replace(FROZEN, scenario="empty")
SILENT = 19
EVENTS = 20
ANSWERED = 7  # after so many answers a receiver has eight attempts under way


def test_a_receiver_is_told_while_many_others_never_answer(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nineteen that hang had eight attempts under way each, more than there are places: nobody else got one."""
    monkeypatch.setattr(courier, "TIMEOUT", 3600.0)
    with ExitStack() as stack:
        api, control = stack.enter_context(clients(stack.enter_context(running(EMPTY))))
        for _ in range(SILENT):
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            created(api.post(WEBHOOKS, json={"url": url, "events": CREATED}))
        created(api.post(WEBHOOKS, json={"url": receiver.url, "events": CREATED}))
        for _ in range(EVENTS):
            event(api)
        ids = [request.headers["webhook-id"] for request in arrived(receiver, EVENTS)]
        assert EVENTS == len(set(ids))
        deadline = time.monotonic() + 30
        while (waiting := drain(control, wait_seconds=0)["deliveries"])["in_flight"] > SILENT:  # an answer is recorded
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert (SILENT * EVENTS, SILENT) == (waiting["due"], waiting["in_flight"])


def test_a_sandbox_leaves_places_to_others_and_what_is_slow_or_new_to_what_has_proved_itself() -> None:
    async def run() -> None:
        free = Places()

        def place(sandbox: int, number: int, is_slow: bool | None) -> AbstractAsyncContextManager[None]:
            return free.at(sandbox, f"receiver-{sandbox}-{number}", is_slow=is_slow)

        async def is_free(place: AbstractAsyncContextManager[None]) -> bool:
            try:
                async with asyncio.timeout(0.02), place:
                    return True
            except TimeoutError:
                return False

        async with asyncio.timeout(5), AsyncExitStack() as stack:
            for is_slow in (True, None):
                for sandbox in (1, 2):
                    for number in range(UNPROVED // 2):
                        await stack.enter_async_context(place(sandbox, number, is_slow))
                    assert not await is_free(place(sandbox, 99, is_slow))
                assert not await is_free(place(3, 99, is_slow))
            for number in range(IN_ALL - 2 * UNPROVED):
                await stack.enter_async_context(place(3, number, is_slow=False))
            assert not await is_free(place(3, 99, is_slow=False))
        assert await is_free(place(3, 99, None))

    asyncio.run(run())


def test_sandboxes_take_turns_at_places_that_become_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of one wait, another's first attempt is next but one; whoever gives up leaves the line."""
    monkeypatch.setattr(posting, "IN_ALL", 2)
    told: list[str] = []

    async def run() -> None:
        free = Places()

        async def attempt(name: str, sandbox: int) -> None:
            async with free.at(sandbox, name, is_slow=False):
                told.append(name)
                await asyncio.sleep(0)

        many = [asyncio.create_task(attempt(f"many {number}", 1)) for number in range(6)]
        await asyncio.sleep(0)
        one = asyncio.create_task(attempt("another", 2))
        many[5].cancel()
        await asyncio.wait([*many, one])

    asyncio.run(run())
    assert 6 == len(told)
    assert told.index("another") <= 2


def test_deleting_a_webhook_ends_its_attempts(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made, told and deleted again and again, webhooks to silent addresses took every place of every sandbox."""
    monkeypatch.setattr(courier, "TIMEOUT", 3600.0)
    with ExitStack() as stack:
        api, control = stack.enter_context(clients(stack.enter_context(running(EMPTY))))
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        for turn in range(2):
            hook = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/{turn}", "events": CREATED}
            ident = created(api.post(WEBHOOKS, json=hook))["webhook"]["id"]
            event(api)
            connection, _ = silent.accept()
            stack.callback(connection.close)
            assert b"POST" in connection.recv(4)
            assert 200 == api.delete(f"{WEBHOOKS}/{ident}").status_code
            connection.settimeout(5)
            while connection.recv(65536):
                pass
            assert {"due": 0, "in_flight": 0, "held": 0} == drain(control)["deliveries"]


def test_a_receiver_is_told_while_others_that_were_slow_have_many_on_the_way(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have answered, late, and so have several attempts at a time: in half of the places for such."""
    monkeypatch.setattr(courier, "TIMEOUT", 3600.0)
    monkeypatch.setattr(posting, "IN_ALL", 16)
    monkeypatch.setattr(posting, "UNPROVED", 8)
    over = threading.Event()

    def late(request: Received, number: int) -> int:
        if number <= ANSWERED:
            time.sleep(1.05)
        else:
            over.wait(60)
        return 200

    with ExitStack() as stack:
        api, control = stack.enter_context(clients(stack.enter_context(running(EMPTY))))
        others = [stack.enter_context(receiving()) for _ in range(2)]
        stack.callback(over.set)
        for other in others:
            other.decide = late
            created(api.post(WEBHOOKS, json={"url": other.url, "events": ["customer.*"]}))
        for _ in range(EVENTS):
            event(api)
        deadline = time.monotonic() + 30
        while sum(len(other.requests) for other in others) < 2 * ANSWERED + 4:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        created(api.post(WEBHOOKS, json={"url": receiver.url, "events": CREATED}))
        for _ in range(EVENTS):
            event(api)
        arrived(receiver, EVENTS)
        assert 2 * ANSWERED + 4 == sum(len(other.requests) for other in others)
        assert not drain(control, wait_seconds=0)["complete"]


def test_tests_of_a_silent_receiver_leave_connections_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token had 540 requests wait, which was every connection there is; now so many wait, and others are served."""
    monkeypatch.setattr(calls_server, "OF_ONE", 3)
    monkeypatch.setattr(webhooks, "PATIENCE", 2.0)
    with ExitStack() as stack:
        live = stack.enter_context(running(EMPTY, Limits(connections=8)))
        api, _ = stack.enter_context(clients(live))
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        hook = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/", "events": CREATED}
        ident = created(api.post(WEBHOOKS, json=hook))["webhook"]["id"]
        request = f"POST {WEBHOOKS}/{ident}/test HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
        request += f"Authorization: {api.headers['Authorization']}\r\n\r\n"
        crowd = [stack.enter_context(connect(live.port)) for _ in range(6)]
        for connection in crowd:
            connection.sendall(request.encode())
        assert 200 == api.get("/v2/plans").status_code
        statuses = sorted(answer_on(connection).status for connection in crowd)
        assert [200, 200, 200, 429, 429, 429] == statuses
        assert 3 == api.get("/v2/webhooks/logs").json()["pagination"]["total"]
