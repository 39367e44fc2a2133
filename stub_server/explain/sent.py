"""A refused request as explaining needs it: what was sent, who sent it, and how it was answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Sent:
    """One request and its refusal. `path` is the one in its world; `headers` are by lower-case name, without secrets.

    `body` is None where it was not kept. `merchant_id` is the caller's, None for one who was not admitted; `caller`
    says who it was, for people. `answer` is the refusal's body.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes | None
    status: int
    code: str
    answer: Mapping[str, Any] = field(default_factory=dict)
    merchant_id: str | None = None
    caller: str | None = None
    simulated: str | None = None
    prefix: str = ""

    @property
    def message(self) -> str:
        """What the refusal says to people."""
        return str(self.answer.get("message", ""))

    @property
    def details(self) -> list[dict[str, str]]:
        """The refusal's details."""
        return list(self.answer.get("details", ()))
