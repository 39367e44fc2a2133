"""An equal credential for each caller of a recording, which names callers and holds no credentials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from ..calls.credentials import Tokens
from ..engine.sandbox import Sandbox
from ..files.recording import private_key
from ..kernel.record import Body

# What a request may have sent that was nobody's: each is refused in its own words, and one of them as then.
_STRANGERS = (
    "Bearer sk_sandbox_" + "0" * 40,
    "Bearer pk_sandbox_" + "0" * 24,
    "Bearer eyJhbGciOiJIUzI1NiJ9.e30.AAAA",
    "Basic c29tZWJvZHk6ZWxzZQ==",
    "Bearer nobody",
)


class Callers:
    """Gives credentials that a server of this process accepts, or refuses, as those of the recording were."""

    def __init__(self, tokens: Tokens, secret: bytes, name: str) -> None:
        self._tokens, self._secret, self._name = tokens, secret, name
        self._made: dict[str, str] = {}

    def credentials(self, world: Sandbox, request: Body) -> Iterator[str]:
        """What may have stood in Authorization: all but the last are tried while the answer is another 401."""
        caller = request["caller"]
        if caller is None:
            yield from _STRANGERS
        elif caller["claims"] is not None:
            yield "Bearer " + self._tokens.signed(caller["claims"])
        elif caller["key_id"] is None:
            yield "Bearer anybody"  # a lenient server takes any
        elif caller["kind"] == "public_key":
            yield f"Bearer {_public_key(world, caller['key_id'])}"
        else:
            ident = caller["key_id"]
            yield "Bearer " + (self._made.get(ident) or private_key(self._secret, world.seed, ident, self._name))

    def learn(self, answer: bytes) -> None:
        """Remember the private keys that an answer shows once."""
        if b'"private_key"' in answer:
            try:
                self._walk(orjson.loads(answer))
            except ValueError:
                return

    def _walk(self, node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("private_key"), str) and isinstance(node.get("id"), str):
                self._made[node["id"]] = node["private_key"]
            for member in node.values():
                self._walk(member)
        elif isinstance(node, list):
            for item in node:
                self._walk(item)


def _public_key(world: Sandbox, ident: str) -> str:
    for store in world.stores.values():
        record = store.api_keys.find(ident)
        if record is not None:
            key: str = orjson.loads(record.public)["public_key"]
            return key
    return "pk_sandbox_" + "0" * 24
