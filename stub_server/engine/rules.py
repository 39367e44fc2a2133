"""What every sandbox of a server shares and none of them changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..contract.document import Lifecycle
from ..kernel.record import Body
from ..store.tables import Layout
from .settings import SandboxSettings


@dataclass(frozen=True, slots=True)
class Rules:
    """What every sandbox of a server shares and none of them changes.

    `lifecycles` and `changes` (the event types of each change that moves no state) by schema name; `payload_keys` by
    event type; `defaults` by schema name; `banks` are ISPB and name of where payers have their accounts, each as often
    as it is likely; `settings` are those that a new sandbox has.
    """

    layout: Layout
    lifecycles: Mapping[str, Lifecycle]
    changes: Mapping[str, Mapping[str, tuple[str, ...]]]
    payload_keys: Mapping[str, str]
    defaults: Mapping[str, Body]
    banks: tuple[tuple[str, str], ...]
    base_url: str
    settings: SandboxSettings
