"""The event log alone: the oldest events go, and what a step has done to it can be taken back."""

from collections.abc import Iterator

import pytest

from stub_server.events import log as events
from stub_server.events.log import Event, EventLog
from stub_server.kernel.record import NO_EXTRAS


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five events are kept."""
    monkeypatch.setattr(events, "KEPT", 5)


def some(first: int, count: int) -> Iterator[Event]:
    """Events with numbers for ids."""
    for number in range(first, first + count):
        yield Event(str(number), "plan.created", 0, "m", "plan", "a", None, b"{}", b"", NO_EXTRAS)


def filled(count: int) -> EventLog:
    """A log that has had so many events."""
    log = EventLog()
    for event in some(0, count):
        log.append(event)
    return log


@pytest.mark.parametrize("before", [0, 3, 5, 9])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 7, 12])
def test_a_steps_events_can_be_taken_back(before: int, count: int) -> None:
    """However many there were, and however many come at once: what had to go for them is there again."""
    log, was = filled(before), [event.id for event in filled(before)]
    forgotten = log.outgoing(count)
    for event in some(before, count):
        log.append(event)
    numbers = [str(number) for number in range(before + count)]
    assert (numbers[-5:], before + count) == ([event.id for event in log], log.raised)
    log.retract(count, forgotten)
    assert (was, before) == ([event.id for event in log], log.raised)
