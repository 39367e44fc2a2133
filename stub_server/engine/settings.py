"""The settings of one sandbox. They are state: only steps change them."""

from __future__ import annotations

from typing import NamedTuple

from ..domain.deliveries import SCHEDULES


class SandboxSettings(NamedTuple):
    """The members are those of `SandboxSettings` in the contract; `autopay` is seconds of the sandbox clock."""

    autopay: int | None = None
    check_digits: bool = True
    webhook_schedule: str = "standard"
    unknown_query: str = "warn"
    strict_amounts: bool = False

    @property
    def schedule(self) -> tuple[int, ...]:
        """How long each attempt of a delivery waits, in ms."""
        return SCHEDULES[self.webhook_schedule]
