"""Receivers that never answer: whatever waits for them, others are told at once."""

import asyncio
import socket
import threading
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace

import pytest

from stub_server.delivery import courier, places
from stub_server.delivery.places import IN_ALL, SLOW, Places

from ..support.live import FROZEN, running
from ..support.make import created
from ..support.receiver import Received, Receiver, receiving
from .hooks import CREATED, WEBHOOKS, arrived, clients, drain, event

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
        waiting = drain(control, wait_seconds=0)["deliveries"]
        assert (SILENT * EVENTS, SILENT) == (waiting["due"], waiting["in_flight"])


def test_receivers_that_are_known_to_be_slow_leave_half_of_the_places() -> None:
    async def run() -> None:
        free = Places()
        async with asyncio.timeout(5), AsyncExitStack() as stack:
            for number in range(SLOW):
                assert free.is_free(f"http://slow-{number}/", slow=True)
                await stack.enter_async_context(free.at(f"http://slow-{number}/", slow=True))
            assert not free.is_free("http://one-more/", slow=True)
            for number in range(IN_ALL - SLOW):
                assert free.is_free(f"http://fast-{number}/", slow=False)
                await stack.enter_async_context(free.at(f"http://fast-{number}/", slow=False))
            assert not free.is_free("http://one-more/", slow=False)
        assert free.is_free("http://one-more/", slow=True)

    asyncio.run(run())


def test_a_receiver_is_told_while_others_that_were_slow_have_many_on_the_way(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have answered, late, and so have several attempts at a time: in half of the places."""
    monkeypatch.setattr(courier, "TIMEOUT", 3600.0)
    monkeypatch.setattr(places, "IN_ALL", 8)
    monkeypatch.setattr(places, "SLOW", 4)
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
