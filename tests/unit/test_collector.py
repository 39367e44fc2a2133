"""A start is made without the garbage collector; a server is not."""

import asyncio
import gc
import weakref

import pytest
from click.testing import CliRunner

from stub_server.cli.command import main
from stub_server.cli.serving import QUIET, SELDOM, YOUNG, _Server
from stub_server.server.protocol import ConnectionMonitor

from ..support.live import Live


def test_all_is_collected_once_nobody_is_there(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages leave cycles, which may have become old while they were made."""
    server = _Server(live.app, live.settings)
    gc.disable()
    try:
        made = Made()
        made.itself = made
        gc.collect(YOUNG)
        gone = weakref.ref(made)
        del made
        monkeypatch.setattr(ConnectionMonitor, "is_idle", False)
        asyncio.run(server.on_tick(SELDOM))
        monkeypatch.setattr(ConnectionMonitor, "is_idle", True)
        for later in range(1, QUIET):  # a client that asks again at once is not kept waiting
            asyncio.run(server.on_tick(SELDOM + later))
            assert gone() is not None
        asyncio.run(server.on_tick(SELDOM + QUIET))
        assert gone() is None
    finally:
        gc.enable()


class Made:
    """Something that refers to itself."""

    itself: object


def test_a_start_that_is_refused_leaves_the_collector_on() -> None:
    answer = CliRunner().invoke(main, ["serve", "--port", "0", "--scenario", "gone"])
    assert answer.exit_code == 2
    assert gc.isenabled()
