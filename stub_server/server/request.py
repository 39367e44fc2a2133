"""What arrived: a request; and counts of those that a server has answered.

A request is made once; what layers find out is handed on beside it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..contract.secrets import KEY_HEADERS
from ..core.problem import BadRequest, Refusal
from ..core.text import host_name, is_local, nearest, warning_of

if TYPE_CHECKING:  # a command that asks a running server needs no engine
    from ..engine.kept import Trace

CONTROL = "/_sandbox"
COMMAND = "stub-server-command"  # the User-Agent of what the command sends
ADMIN_KEY, CONTROL_KEY = (name.encode() for name in KEY_HEADERS)
LARGEST_BODY = 1_048_576  # bytes
MOST_WARNINGS = 20  # of one answer
_OURS = "x-sandbox"
_ENDINGS = ("", "-admin-key", "-as-of", "-client-ip", "-control-key", "-delay", "-simulate")
OF_CONNECTIONS = frozenset(
    (
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""Headers that are about one connection. A proxy does not pass them on."""
BOUNDS = (
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    1_000_000,
    5_000_000,
)
"""µs at which the buckets of latencies end."""
CLASSES = {0: "none", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}
"""Classes of statuses by their first digit, 0 without an answer."""
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(.+)").fullmatch

Sent = tuple[tuple[bytes, bytes], ...]
"""Names and values of the headers of a request, in their order."""
Named = Mapping[bytes, bytes]
"""The last value of each header by its name."""


class Head(NamedTuple):
    """The headers of requests. Clients send the same ones again and again, which share one.

    `without_effect` is a warning of each that does nothing. `kept` is what the journal keeps of
    them, and `has_secrets` says that it may have some.
    """

    headers: Named
    without_effect: tuple[str, ...]
    kept: bytes = b""
    has_secrets: bool = False


@dataclass(slots=True, eq=False)  # a tuple takes longer to make
class Request:
    """A request as it arrived. Nothing changes it.

    `path` is decoded and has the prefix of the sandbox, if one was sent. `sent` are the headers in
    their order, names in lower case; `headers` has the last of each name, and `head` what follows
    from them. `began` is the machine's counter in ns, `received_at` its time in ms. `is_hop` says
    that another server of the store has forwarded it. One that `is_internal` comes from this
    server, which shows a page: it is not journaled, limited or made to fail. `permitted` are
    methods and paths of the control surface that need no key.
    """

    method: str
    path: str
    query: bytes
    sent: Sent
    headers: Named
    head: Head
    client: tuple[str, int] | None
    began: int
    received_at: int
    is_hop: bool = False
    is_internal: bool = False
    permitted: Collection[tuple[str, str]] = ()

    @property
    def peer(self) -> str:
        """The address that it came from, empty where the server was not told."""
        return "" if self.client is None else self.client[0]

    @property
    def is_foreign(self) -> bool:
        """Whether a page of another machine has sent it."""
        origin = self.headers.get(b"origin")
        return origin is not None and not is_local_origin(origin)

    async def read(
        self, receive: Callable[[], Awaitable[Any]], most: int = LARGEST_BODY
    ) -> bytearray:
        """The whole body. Raises a 413 as soon as more than `most` bytes have come, BadRequest if
        the client leaves.

        Pieces are added in place: to join hundreds of megabytes would delay all other requests.
        """
        length = self.headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > most:
            raise _too_large(most)
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BadRequest("The client left before its body was complete.")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > most:
                raise _too_large(most)
        return body


class Requests:
    """Counts the requests of a server.

    `counts` are by operation id and class of status: requests by bucket, and last their µs. All
    begin at 0: Prometheus sees no increase in a series that appears with its first count.
    """

    def __init__(self, operations: Iterable[str]) -> None:
        self.counts: dict[str, dict[int, list[int]]] = {}
        for name in ("", *operations):
            self.counts[name] = {status: [0] * (len(BOUNDS) + 2) for status in CLASSES}

    def count(self, trace: Trace) -> None:
        """Count a request that has ended."""
        counts = self.counts[trace.operation or ""][trace.status // 100]
        counts[bisect_left(BOUNDS, trace.micros)] += 1
        counts[-1] += trace.micros


@lru_cache(maxsize=64)
def is_local_origin(origin: bytes) -> bool:
    """Whether a page's origin is on this machine: any port, any scheme, for apps in a shell have
    one of their own.
    """
    found = _ORIGIN(origin.decode("latin-1"))
    return found is not None and is_local(host_name(found[1]))


def has_body(headers: Named) -> bool:
    """Whether a body comes after these headers."""
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _too_large(most: int) -> Refusal:
    return Refusal(
        f"The body is larger than {most} bytes, the most that the sandbox reads.",
        status=413,
        code="payload_too_large",
    )


def by_name(sent: Sent) -> Head:
    """The headers of a request by their names, and warnings of those that have no effect: X-Sandbox
    headers that this server does not know may be misspelt. The journal has none of them.
    """
    headers, found = dict(sent), list[str]()
    if b"if-match" in headers:
        found.append("if_match_ignored")
    for header in headers:
        name = header.decode("latin-1")
        ending = name.removeprefix(_OURS)
        if ending == name or ending in _ENDINGS:
            continue
        known = nearest(ending, _ENDINGS)
        if known is not None:
            known = _OURS + known
        found.append(warning_of("unknown_sandbox_header", name, known))
        if len(found) == MOST_WARNINGS:
            break
    return Head(headers, tuple(found))
