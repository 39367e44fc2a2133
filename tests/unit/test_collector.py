"""A start is made without the garbage collector; a server is not."""

import asyncio
import gc
import weakref

import pytest
from click.testing import CliRunner

from stub_server.cli.command import main
from stub_server.cli.serving import QUIET, SELDOM, YOUNG, _Server, calm_collector
from stub_server.server.protocol import ConnectionMonitor

from ..support.live import Live

MADE = 10_000  # objects between two ticks


@pytest.mark.check
def test_a_server_runs_with_the_collector_on_and_its_world_out_of_sight() -> None:
    usual = gc.get_threshold()
    gc.disable()
    try:
        calm_collector()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*usual)
        gc.enable()


@pytest.mark.parametrize(("idle", "tick", "old"), [(True, 1, 2), (False, 1, 1), (False, 10, 2)])
def test_what_outlives_some_ticks_is_looked_at_no_more(
    live: Live, monkeypatch: pytest.MonkeyPatch, *, idle: bool, tick: int, old: int
) -> None:
    monkeypatch.setattr(ConnectionMonitor, "is_idle", idle)
    server = _Server(live.app, live.settings)
    gc.disable()
    try:
        made = [[number] for number in range(MADE)]
        asyncio.run(server.on_tick(tick))
        found = {id(each) for each in gc.get_objects(old)}
        assert found.issuperset(map(id, made))
    finally:
        gc.enable()


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
