"""Receivers that never answer: whatever waits for them, others are told at once."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack

import pytest

from stub_server.delivery import courier
from stub_server.delivery.places import IN_ALL, SLOW, Places

from ..support.live import Live
from ..support.make import created
from ..support.receiver import Receiver
from .hooks import CREATED, WEBHOOKS, arrived, clients, drain, event

SILENT = 19
EVENTS = 20


def test_a_receiver_is_told_while_many_others_never_answer(
    serve: Callable[..., Live], receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nineteen that hang had eight attempts under way each, more than there are places: nobody else got one."""
    monkeypatch.setattr(courier, "TIMEOUT", 3600.0)
    with ExitStack() as stack:
        api, control = stack.enter_context(clients(serve(scenario="empty")))
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
        places = Places()
        async with asyncio.timeout(5), AsyncExitStack() as stack:
            for number in range(SLOW):
                assert places.is_free(f"http://slow-{number}/", slow=True)
                await stack.enter_async_context(places.at(f"http://slow-{number}/", slow=True))
            assert not places.is_free("http://one-more/", slow=True)
            for number in range(IN_ALL - SLOW):
                assert places.is_free(f"http://fast-{number}/", slow=False)
                await stack.enter_async_context(places.at(f"http://fast-{number}/", slow=False))
            assert not places.is_free("http://one-more/", slow=False)
        assert places.is_free("http://one-more/", slow=True)

    asyncio.run(run())
