"""A refused request as explaining needs it: what was sent, who sent it, and how it was answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from ..contract.secrets import LEFT_OUT


@dataclass(frozen=True, slots=True)
class Sent:
    """One request and its refusal. `path` is the one in its world; `headers` are by lower-case name, without secrets.

    `body` is None where it was not kept, and `is_bare` says that no headers and bodies are. `merchant_id` is the
    caller's, None for one who was not admitted; `caller` says who it was, for people. `answer` is the refusal's body.
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
    is_bare: bool = False

    @property
    def why_unknown(self) -> str | None:
        """Why the body is not known; None where it is, and where none was sent."""
        if self.is_bare:
            return "the journal of this server keeps no bodies (--journal 0)"
        if self.body == LEFT_OUT:
            return "the journal leaves a large body out that may hold secrets"
        if self.body is None and (
            self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers
        ):
            return "it was refused before it was read"
        return None

    @property
    def message(self) -> str:
        """What the refusal says to people."""
        return str(self.answer.get("message", ""))

    @property
    def details(self) -> list[dict[str, str]]:
        """The refusal's details."""
        return list(self.answer.get("details", ()))


class Recorded(Protocol):
    """A request as the journal keeps it, secrets left out; `caller` is a `calls.call.Caller`."""

    method: str
    path: str
    query: bytes
    status: int

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """The headers as they came, names in lower case."""

    @property
    def body(self) -> bytes | None:
        """The body as it came; None where it was not kept."""

    @property
    def answer(self) -> bytes | None:
        """The answer's body."""

    @property
    def code(self) -> str | None:
        """The code of a refusal."""

    @property
    def caller(self) -> Any:
        """Who sent it, where the credential was recognised."""

    @property
    def simulated(self) -> str | None:
        """What had a hand in the answer."""


def sent_of(entry: Recorded, *, is_bare: bool) -> Sent:
    """What explaining needs of a recorded request; `is_bare` says that its journal keeps no headers and bodies."""
    caller = entry.caller
    return Sent(
        entry.method,
        entry.path,
        entry.query.decode("latin-1"),
        dict(entry.headers),
        entry.body,
        entry.status,
        entry.code or "",
        _refusal(entry.answer),
        None if caller is None else caller.merchant_id,
        None if caller is None else f"{caller.kind} {caller.key_id or caller.subject}",
        entry.simulated,
        is_bare,
    )


def _refusal(answer: bytes | None) -> Mapping[str, Any]:
    """The body of a refusal; nothing where none was kept."""
    try:
        said = orjson.loads(answer or b"")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
