"""New connections are accepted, however many are busy."""

import selectors
import signal
import socket
from contextlib import ExitStack
from typing import Any

import pytest

from ..support.processes import Process
from ..support.wire import connect

pytestmark = [pytest.mark.check, pytest.mark.turn]

BUSY = 20
DEPTH = 50
NEW = 100
HEALTH = b"GET /_sandbox/health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_many_connections_are_accepted_in_each_turn_of_the_event_loop() -> None:
    """While 400 clients asked for health, everybody new waited until they ended.

    The server is stopped meanwhile, so that all is there when it goes on.
    """
    with Process("--scenario", "empty") as server, ExitStack() as opened:
        busy = [opened.enter_context(connect(server.port)) for _ in range(BUSY)]
        for connection in busy:
            connection.sendall(HEALTH)
            connection.recv(65536)
        server.signal(signal.SIGSTOP)
        for connection in busy:
            connection.sendall(HEALTH * DEPTH)
        new = [opened.enter_context(connect(server.port)) for _ in range(NEW)]
        for connection in new:
            connection.sendall(HEALTH)
        server.signal(signal.SIGCONT)
        assert NEW - 10 <= answered_first(new, busy)


def answered_first(new: list[socket.socket], busy: list[socket.socket]) -> int:
    """How many new connections are answered before the busy ones have all their answers."""
    answers = {*new}
    counts = dict.fromkeys(busy, 0)
    with selectors.DefaultSelector() as selector:
        for each in (*busy, *new):
            selector.register(each, selectors.EVENT_READ)
        while min(counts.values()) < DEPTH:
            for key, _ in selector.select(30):
                connection: Any = key.fileobj
                received = connection.recv(65536)
                assert received
                if connection in counts:
                    counts[connection] += received.count(b"HTTP/1.1 200")
                answers.discard(connection)
    return len(new) - len(answers)
