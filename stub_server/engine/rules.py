"""What every sandbox of a server shares and none of them changes, and the settings that each has of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..contract.converting import Converter
from ..contract.document import Lifecycle
from ..domain.deliveries import SCHEDULES
from ..kernel.record import Body
from ..store.tables import Layout


class SandboxSettings(NamedTuple):
    """The settings of one sandbox. They are state: only steps change them.

    The members are those of `SandboxSettings` in the contract; `autopay` is seconds of the sandbox clock.
    """

    autopay: int | None = None
    check_digits: bool = True
    webhook_schedule: str = "standard"
    unknown_query: str = "warn"
    strict_amounts: bool = False

    @property
    def schedule(self) -> tuple[int, ...]:
        """How long each attempt of a delivery waits, in ms."""
        return SCHEDULES[self.webhook_schedule]


@dataclass(frozen=True, slots=True)
class Rules:
    """What every sandbox of a server shares and none of them changes.

    `lifecycles` and `changes` (the event types of each change that moves no state) by schema name; `payload_keys` by
    event type; `defaults` by schema name; `banks` are ISPB and name of where payers have their accounts, each as often
    as it is likely; `converter` knows the contract that is served; `settings` are those that a new sandbox has.
    """

    layout: Layout
    lifecycles: Mapping[str, Lifecycle]
    changes: Mapping[str, Mapping[str, tuple[str, ...]]]
    payload_keys: Mapping[str, str]
    defaults: Mapping[str, Body]
    banks: tuple[tuple[str, str], ...]
    converter: Converter
    base_url: str
    settings: SandboxSettings
