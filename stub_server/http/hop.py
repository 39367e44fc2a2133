"""The header of a request that one server of a store forwards to another: whose request it is, signed."""

from __future__ import annotations

import hmac
from enum import Enum
from time import time
from typing import Any

from starlette.types import Scope

from .peers import Peers

HOP = b"x-sandbox-hop"
"""Last of a forwarded request; in an answer to one it is one of the words below."""
VALID = 30  # seconds by which the clocks of two servers may differ


class Word(Enum):
    """What a server answers to another one, and to no client."""

    ELSEWHERE = b"elsewhere"
    """Nothing was done: the server does not have the sandbox."""
    LEAVING = b"leaving"
    """Nothing was done: the server is about to stop."""
    DROPPED = b"dropped"
    """A fault rule drops the client's connection without an answer."""


class Hops:
    """One per server of a shared store. Servers of one store share the secret of their signatures."""

    def __init__(self, secret: bytes) -> None:
        self._key, self.peers = hmac.digest(secret, HOP, "sha256"), Peers()
        self.said = {word: hmac.digest(self._key, word.value, "sha256").hex().encode() for word in Word}
        """The words as they are sent. They are secret: a fault rule may add any header to an answer."""
        self.words = {said: word for word, said in self.said.items()}

    def header(self, scope: Scope) -> tuple[bytes, bytes]:
        """The header of a request that is forwarded: when, for whom, and the signature of both and of the target."""
        host, port = scope.get("client") or ("-", 0)
        told = b"%d %b %d" % (time(), host.encode(), port)
        return HOP, b"%b %b" % (told, self._signature(scope, told))

    def take(self, scope: Scope) -> tuple[str, int] | None:
        """Take the header of another server off a request; answers the client's address and port.

        One that stands elsewhere than last, is forged or old stays, and nothing in it is believed.
        """
        headers = scope["headers"]
        if not headers or headers[-1][0] != HOP:
            return None
        told, _, signature = headers[-1][1].rpartition(b" ")
        if not hmac.compare_digest(self._signature(scope, told), signature):
            return None
        at, host, port = told.decode().split(" ")
        if abs(time() - int(at)) > VALID:
            return None
        scope["headers"] = headers[:-1]
        return host, int(port)

    def _signature(self, scope: Scope, told: bytes) -> bytes:
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        signed = (scope["method"].encode(), target_of(scope), host, told)
        return hmac.digest(self._key, b"\n".join(signed), "sha256").hex().encode()


def target_of(scope: Scope) -> Any:
    """Path and query of a request as they were sent, which a layer may have changed in the scope."""
    query = scope["query_string"]
    return scope["raw_path"] + (b"?" + query if query else b"")
