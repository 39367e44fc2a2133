"""Long work beside the requests."""

import asyncio

import pytest

from stub_server.core.slices import BackgroundWorker, Sliced


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
        await asyncio.gather(*(worker.in_slices(work(of), of) for of in ("one", "two", "three")))

    asyncio.run(run())
    assert {"one", "two", "three"} == {of for each in turns for of in each}
    assert max(map(len, turns)) == 1
