"""Receivers that never answer: whatever waits for them, others are told at once."""

import socket
import time
from contextlib import ExitStack
from dataclasses import replace

import pytest

from stub_server.operations import webhooks
from stub_server.server import server as calls_server
from stub_server.server.protocol import Limits
from stub_server.webhooks import courier

from ..support.live import FROZEN, running
from ..support.make import created
from ..support.receiver import Receiver
from ..support.wire import answer_on, connect
from .hooks import CREATED, WEBHOOKS, arrived, clients, drain, event

pytestmark = pytest.mark.check

EMPTY = replace(FROZEN, scenario="empty")
SILENT = 19
EVENTS = 20


@pytest.mark.promise("silent-receivers-delay-nobody")
def test_a_receiver_is_told_while_many_others_never_answer(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has one attempt under way."""
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
        # an answer is recorded
        while (waiting := drain(control, wait_seconds=0)["deliveries"])["in_flight"] > SILENT:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert (SILENT * EVENTS, SILENT) == (waiting["due"], waiting["in_flight"])


@pytest.mark.promise("attempts-under-way")
def test_silent_receivers_of_a_sandbox_leave_places_to_others(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of one sandbox hang, another one's receiver is told."""
    monkeypatch.setattr(courier, "TIMEOUT", 3600.0)
    monkeypatch.setattr(courier, "OF_SANDBOX", 2)
    with ExitStack() as stack:
        live = stack.enter_context(running(EMPTY))
        api, control = stack.enter_context(clients(live))
        for _ in range(3):
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            created(api.post(WEBHOOKS, json={"url": url, "events": CREATED}))
        event(api)
        api.base_url = f"{live.url}/s/neighbour"
        token = api.get("/_sandbox/credentials").json()["jwt"]
        api.headers["Authorization"] = f"Bearer {token}"
        created(api.post(WEBHOOKS, json={"url": receiver.url, "events": CREATED}))
        event(api)
        arrived(receiver, 1)
        assert {"due": 3, "in_flight": 3, "held": 0} == drain(control, wait_seconds=0)["deliveries"]


@pytest.mark.promise("waiting-requests")
def test_tests_of_a_silent_receiver_leave_connections_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One sandbox had 540 requests wait, which was every connection; now so many wait, and others
    are served.
    """
    monkeypatch.setattr(calls_server, "OF_SANDBOX", 3)
    monkeypatch.setattr(webhooks, "PATIENCE", 2.0)
    with ExitStack() as stack:
        live = stack.enter_context(running(EMPTY, Limits(connections=8)))
        api, _ = stack.enter_context(clients(live))
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        hook = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/", "events": CREATED}
        ident = created(api.post(WEBHOOKS, json=hook))["webhook"]["id"]
        request = (
            f"POST {WEBHOOKS}/{ident}/test HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
        )
        request += f"Authorization: {api.headers['Authorization']}\r\n\r\n"
        crowd = [stack.enter_context(connect(live.port)) for _ in range(6)]
        for connection in crowd:
            connection.sendall(request.encode())
        assert 200 == api.get("/v2/plans").status_code
        statuses = sorted(answer_on(connection).status for connection in crowd)
        assert [200, 200, 200, 429, 429, 429] == statuses
        assert 3 == api.get("/v2/webhooks/logs").json()["pagination"]["total"]
