"""What a replay supplies in place of the machine and the clients: the time, the ids of requests, and credentials."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import orjson

from ..calls.credentials import Tokens
from ..contract.source import nodes
from ..engine.sandbox import Sandbox
from ..files.recording import private_key
from ..kernel.clock import EARLIEST_START, LATEST_START
from .recorded import Recorded

# Credentials that are rejected, each with another message: one of them has that of the recorded answer.
_STRANGERS = (
    "Bearer sk_sandbox_" + "0" * 40,
    "Bearer pk_sandbox_" + "0" * 24,
    "Bearer eyJhbGciOiJIUzI1NiJ9.e30.AAAA",
    "Basic c29tZWJvZHk6ZWxzZQ==",
    "Bearer nobody",
)


class Timepiece:
    """The machine's time as the recording has it, in ms."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def show(self, sandbox: Sandbox, at: int, wall: int | None = None) -> None:
        """Set the time so that a running clock shows `at`; if the clock is frozen, set it to `wall` if given."""
        if not sandbox.clock.frozen:  # within the years that can be written, whatever clock the file has
            self.now = min(max(at - sandbox.clock.state.offset, EARLIEST_START), LATEST_START)
        elif wall is not None:
            self.now = wall


class RequestIds(Random):
    """Random bits for request ids: those of `use` once, else generated ones."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self._next: int | None = None

    def use(self, ident: str) -> None:
        """Give the next request this id."""
        self._next = int(ident.removeprefix("req_"), 16)

    def getrandbits(self, k: int, /) -> int:
        """The bits of the next id."""
        given, self._next = self._next, None
        return super().getrandbits(k) if given is None else given


class Callers:
    """Credentials for the callers of a recording, which names callers and contains no credentials."""

    def __init__(self, tokens: Tokens, secret: bytes, name: str) -> None:
        self._tokens, self._secret, self._name = tokens, secret, name
        self._made: dict[str, str] = {}

    def credentials(self, sandbox: Sandbox, request: Recorded) -> Iterator[str]:
        """Values of Authorization to try, the next one while the answer is a 401 that differs from the recorded one."""
        caller = request.caller
        if caller is None:
            yield from _STRANGERS
        elif caller["claims"] is not None:
            yield "Bearer " + self._tokens.signed(caller["claims"])
        elif caller["key_id"] is None:
            yield "Bearer anybody"  # a lenient server takes any
        elif caller["kind"] == "public_key":
            yield f"Bearer {_public_key(sandbox, caller['key_id'])}"
        else:
            ident = caller["key_id"]
            yield "Bearer " + (self._made.get(ident) or private_key(self._secret, sandbox.seed, ident, self._name))

    def learn(self, answer: bytes) -> None:
        """Remember the private keys that an answer shows once."""
        if b'"private_key"' in answer:
            with suppress(ValueError):
                for _, node in nodes([orjson.loads(answer)]):
                    if isinstance(node, dict) and isinstance(node.get("private_key"), str) and "id" in node:
                        self._made[node["id"]] = node["private_key"]


def _public_key(sandbox: Sandbox, ident: str) -> str:
    for store in sandbox.stores.values():
        record = store.api_keys.find(ident)
        if record is not None:
            key: str = orjson.loads(record.public)["public_key"]
            return key
    return "pk_sandbox_" + "0" * 24
