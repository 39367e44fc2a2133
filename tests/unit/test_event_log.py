"""The event log alone: the oldest events go, and what a step has done to it can be taken back."""

import pytest

from stub_server.core.record import NO_EXTRAS
from stub_server.engine import lists
from stub_server.engine.lists import Ends, Event, EventLog


def large(ident: str, size: int) -> Event:
    """An event about a record of so many bytes."""
    return Event(ident, "plan.created", 0, "m", "plan", "a", None, b"x" * size, b"", NO_EXTRAS)


def keep(log: EventLog, event: Event) -> Ends:
    """Add an event as a step does; answers how the log changed."""
    ends = Ends(after=(event,))
    log.exchange(ends)
    return ends


@pytest.mark.promise("events")
def test_events_are_kept_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand large orders were 25 GB."""
    monkeypatch.setattr(lists, "MOST_EVENT_BYTES", 3 * lists.EVENT_OVERHEAD + 3_000)
    log = EventLog()
    for ident in "abc":
        keep(log, large(ident, 1_000))
    done = keep(log, large("d", 1_500))
    assert ["c", "d"] == [event.id for event in log]
    log.exchange(done.mirrored)
    assert ["c"] == [event.id for event in log]
    twin = log.copy()
    keep(twin, large("e", 1))
    assert ["c", "e"] == [event.id for event in twin]
    assert ["c"] == [event.id for event in log]
