"""What a replay cannot have from the machine: the time of each request, and its id."""

from __future__ import annotations

from random import Random

from ..engine.sandbox import Sandbox
from ..kernel.clock import EARLIEST_START, LATEST_START


class Timepiece:
    """The machine's time as the recording has it, in ms."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def show(self, world: Sandbox, at: int, wall: int | None = None) -> None:
        """Have a running clock of a world show an instant. Where it stands the machine's time is `wall`, if told."""
        if not world.clock.frozen:  # within the years that can be written, whatever clock a file gave the world
            self.now = min(max(at - world.clock.state.offset, EARLIEST_START), LATEST_START)
        elif wall is not None:
            self.now = wall


class RequestIds(Random):
    """Gives request ids that are told, one at a time, and others in between."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.told: int | None = None

    def tell(self, ident: str) -> None:
        """Have the next request be called so."""
        self.told = int(ident.removeprefix("req_"), 16)

    def getrandbits(self, k: int, /) -> int:
        """The bits of the id that was told."""
        told, self.told = self.told, None
        return super().getrandbits(k) if told is None else told
