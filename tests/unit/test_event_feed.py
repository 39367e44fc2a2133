"""Events after a position, when the log has let the oldest go."""

import pytest

from stub_server.events import log as module
from stub_server.events.log import Event, EventLog
from stub_server.kernel.record import NO_EXTRAS


def test_events_after_a_position_are_those_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 5)
    log = EventLog()
    for number in range(8):
        log.append(Event(str(number), "order.paid", 0, "", "order", "", None, b"", b"", NO_EXTRAS))
    expected = {0: ["3", "4", "5"], 3: ["3", "4", "5"], 4: ["4", "5", "6"], 7: ["7"], 8: []}
    assert expected == {position: [event.id for event in log.after(position, 3)] for position in expected}
