"""Long work beside the requests: what it was given is free again as soon as it has failed."""

import asyncio
import gc
from weakref import ref

import pytest

from stub_server.core.slices import BackgroundWorker, Sliced


class Large:
    """What would be missed."""


@pytest.mark.check
@pytest.mark.parametrize("fails", [True, False])
def test_what_work_was_given_is_let_go_at_once(*, fails: bool) -> None:
    """Without the collector of cycles, which comes late where little else is made: uploads have up
    to 256 MiB.
    """
    held: list[ref[Large]] = []

    async def run() -> None:
        lane, given = BackgroundWorker(), Large()
        held.append(ref(given))

        def work(given: Large = given) -> bool:
            if fails:
                raise ValueError(given)
            return True

        del given
        task = work
        del work
        try:
            waiting = lane.beside(task)
            del task
            assert await waiting
        except ValueError:
            pass
        await lane.beside(lambda: None)  # the thread is done with what came before

    gc.disable()
    try:
        asyncio.run(run())
        assert held[0]() is None
    finally:
        gc.enable()


@pytest.mark.check
def test_each_turn_of_the_loop_has_one_slice() -> None:
    """A thousand lists of timers had theirs in one turn, and nobody else was served for 42 s."""
    turns: list[list[str]] = [[]]
    released: list[bool] = []

    def work(of: str) -> Sliced[None]:
        while not released:
            if of not in turns[-1]:
                turns[-1].append(of)
            yield

    def turn() -> None:
        turns.append([])
        if len(turns) < 10:
            asyncio.get_running_loop().call_soon(turn)
        else:
            released.append(True)

    async def run() -> None:
        worker = BackgroundWorker()
        asyncio.get_running_loop().call_soon(turn)
        await asyncio.gather(*(worker.in_slices(work(of)) for of in ("one", "two", "three")))

    asyncio.run(run())
    assert {"one", "two", "three"} == {of for each in turns for of in each}
    assert max(map(len, turns)) == 1
