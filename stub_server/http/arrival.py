"""A request as it arrives: what is known of it before it has an operation."""

from __future__ import annotations

from typing import NamedTuple

from starlette.types import Scope

from ..engine.sandbox import Sandbox
from .errors import Headers


class Arrival:
    """One request. `headers` are by name in lower case.

    `path` is the path in its world: choosing the world takes the `prefix` off, which is `/s/{name}` or empty.
    """

    __slots__ = ("headers", "method", "origin", "path", "prefix", "query", "sandbox")

    def __init__(self, scope: Scope, sandbox: Sandbox) -> None:
        """`sandbox` is the world that refuses the request where none can be chosen."""
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.origin = self.headers.get(b"origin")
        self.prefix, self.sandbox = "", sandbox


class Bodiless(NamedTuple):
    """An answer that a step at the edge gives itself."""

    status: int
    headers: Headers
