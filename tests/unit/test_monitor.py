"""The watch over connections, by a clock that the test moves: each deadline to the second, and who makes room."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from stub_server.http.monitor import ConnectionMonitor, Limits, Wait


class Loop:
    """A loop whose time is the test's."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.due: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., None], *args: Any) -> None:
        self.due.append((self.now + delay, callback, args))

    def pass_(self, seconds: float) -> None:
        """Let time pass, calling what falls due."""
        until = self.now + seconds
        while self.due and self.due[0][0] <= until:
            due, callback, args = self.due.pop(0)
            self.now = max(self.now, due)
            callback(*args)
        self.now = until


class Client:
    """A connection in a state that the test sets."""

    def __init__(self, rested: float = 0.0) -> None:
        self.rested = rested
        self.state: tuple[Wait, int] = (Wait.REQUEST, 0)
        self.told: list[object] = []

    def waits_for(self) -> tuple[Wait, int]:
        return self.state

    def give_up(self, wait: Wait) -> None:
        self.told.append(wait)

    def drop(self) -> None:
        self.told.append("dropped")

    def turn_away(self) -> None:
        self.told.append("turned away")


def opened(watch: ConnectionMonitor, loop: Loop, *clients: Client) -> None:
    for client in clients:
        watch.opened(cast(Any, client), cast(asyncio.AbstractEventLoop, loop))


@pytest.mark.parametrize(
    ("wait", "seconds"),
    [(Wait.REQUEST, 10), (Wait.HEAD, 10), (Wait.BODY, 30), (Wait.NEXT, 60), (Wait.READER, 30), (Wait.END, 2)],
)
def test_a_deadline_is_kept_to_within_two_sweeps(wait: Wait, seconds: float) -> None:
    watch, loop, client = ConnectionMonitor(Limits()), Loop(), Client()
    client.state = (wait, 1)
    opened(watch, loop, client)
    loop.pass_(seconds - 0.6)
    assert client.told == []
    loop.pass_(1.6)
    assert client.told[:1] == [wait]


def test_a_time_in_which_the_server_stood_still_is_not_the_clients() -> None:
    """What they sent meanwhile is read after the sweep that comes first."""
    watch, loop, client = ConnectionMonitor(Limits()), Loop(), Client()
    client.state = (Wait.HEAD, 1)
    opened(watch, loop, client)
    loop.pass_(3)
    loop.now += 100
    loop.pass_(1)
    assert client.told == []


@pytest.mark.check
def test_an_answer_has_no_deadline() -> None:
    watch, loop, client = ConnectionMonitor(Limits()), Loop(), Client()
    client.state = (Wait.ANSWER, 1)
    opened(watch, loop, client)
    loop.pass_(100_000)
    assert client.told == []


def test_whoever_moves_on_has_his_time_anew() -> None:
    watch, loop, client = ConnectionMonitor(Limits()), Loop(), Client()
    opened(watch, loop, client)
    for number in range(10):
        client.state = (Wait.HEAD, number)
        loop.pass_(8)
    assert client.told == []
    loop.pass_(4)
    assert client.told[:1] == [Wait.HEAD]


def test_an_answer_that_is_read_slowly_moves_on_and_one_that_is_not_read_does_not() -> None:
    watch, loop, slow, deaf = ConnectionMonitor(Limits()), Loop(), Client(), Client()
    opened(watch, loop, slow, deaf)
    for size in range(10_000_000, 10_000_010):
        slow.state, deaf.state = (Wait.READER, size), (Wait.READER, int("10000000"))
        loop.pass_(20)
    assert (slow.told, deaf.told[:1]) == ([], [Wait.READER])


def test_without_connections_nothing_is_looked_at() -> None:
    watch, loop, client = ConnectionMonitor(Limits()), Loop(), Client()
    opened(watch, loop, client)
    watch.closed(cast(Any, client))
    loop.pass_(5)
    assert loop.due == []
    opened(watch, loop, client)
    assert len(loop.due) == 1


def test_the_oldest_idle_connection_makes_room() -> None:
    watch, loop = ConnectionMonitor(Limits(connections=3)), Loop()
    clients = [Client(rested) for rested in (3, 1, 2, 4, 5, 6)]
    opened(watch, loop, *clients)
    assert [["dropped"], ["dropped"], ["dropped"], [], [], []] == [client.told for client in clients]
    assert len(watch) == 3


def test_what_has_become_busy_since_it_was_the_oldest_stays() -> None:
    watch, loop = ConnectionMonitor(Limits(connections=3)), Loop()
    first, second, third, *more = (Client(rested) for rested in range(6))
    opened(watch, loop, first, second, third, more[0])  # first goes; second is the next in the queue
    second.state = (Wait.ANSWER, 1)
    opened(watch, loop, more[1])
    third.rested = 100  # it went before it could be used again
    assert [["dropped"], [], ["dropped"]] == [client.told for client in (first, second, third)]
    more[0].rested = 50  # answered since: the one that came after it is older
    opened(watch, loop, more[2])
    assert ([], ["dropped"]) == (more[0].told, more[1].told)


def test_where_none_is_idle_one_that_keeps_the_server_waiting_goes() -> None:
    watch, loop = ConnectionMonitor(Limits(connections=2)), Loop()
    busy, slow, newcomer = Client(1), Client(2), Client(3)
    busy.state, slow.state = (Wait.ANSWER, 1), (Wait.BODY, 1)
    opened(watch, loop, busy, slow, newcomer)
    assert ([], ["dropped"], []) == (busy.told, slow.told, newcomer.told)


def test_where_all_are_being_answered_newcomers_are_turned_away() -> None:
    """Those that were turned away count as well: however many come, few are kept."""
    watch, loop = ConnectionMonitor(Limits(connections=2)), Loop()
    busy = [Client(1), Client(2)]
    opened(watch, loop, *busy)
    for client in busy:
        client.state = (Wait.ANSWER, 1)
    newcomers = [Client(number) for number in range(3, 10)]
    for client in newcomers:
        client.state = (Wait.END, 1)
    opened(watch, loop, *newcomers)
    assert [[]] * 2 == [client.told for client in busy]
    assert [["turned away", "dropped"]] * 6 + [["turned away"]] == [client.told for client in newcomers]
    assert len(watch) == 3
