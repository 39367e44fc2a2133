"""A request and its answer, as they were on the wire."""

from typing import Any, NamedTuple

import orjson

Headers = tuple[tuple[str, str], ...]
"""Names as they were sent, and values."""
RawHeaders = list[tuple[bytes, bytes]]


class Request(NamedTuple):
    """A request below the base address.

    `path` begins with a slash and is percent-encoded; `query` has no `?`.
    """

    method: str
    path: str
    query: str = ""
    headers: Headers = ()
    body: bytes = b""


class Answer(NamedTuple):
    """An answer. With status 0 there is none, and the body says why."""

    status: int
    headers: Headers = ()
    body: bytes = b""
    seconds: float = 0.0

    @property
    def is_success(self) -> bool:
        """Whether the request was accepted."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """The values of a header, joined by commas, by its name in any case."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ",".join(values) if values else None

    def json(self) -> Any:
        """The body as JSON; None where it is not JSON."""
        try:
            return orjson.loads(self.body)
        except ValueError:
            return None


class Exchange(NamedTuple):
    """A request with its answer."""

    request: Request
    answer: Answer


def texts_of(headers: RawHeaders) -> Headers:
    """Headers as text."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)


def bearer(token: str) -> Headers:
    """The header that sends a credential."""
    return (("Authorization", f"Bearer {token}"),)


def code_of(body: Any) -> str | None:
    """The error code of a body in the contract's shape."""
    code = body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, str) else None


def base_of(url: str) -> str:
    """The parent of `/v2`, which users may give with or without it."""
    return url.rstrip("/").removesuffix("/v2")
