"""RateLimit: how many requests a caller may send (`--rate-limit`), by the machine's clock."""

from __future__ import annotations

from hashlib import blake2b
from math import ceil
from time import monotonic
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, CONTROL, Call
from ..kernel.problem import Limited
from ..kernel.text import counted
from .refusals import Headers

MOST_CALLERS = 10_000


class Window(NamedTuple):
    """What one caller has used since its window began; `ends` is in seconds of the machine."""

    ends: float
    used: int


class RateLimit:
    """A caller is a credential, or an address without one, in one sandbox. The control surface has no limit."""

    def __init__(self, app: ASGIApp, rule: tuple[int, int]) -> None:
        """`rule`: so many requests in a window of so many seconds, which begins with a caller's first request."""
        most, seconds = rule
        self.app, self.most, self.seconds = app, most, seconds
        self._policy = f'"default";q={most};w={seconds}'
        self._windows: dict[bytes, Window] = {}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        if not call.path.startswith(CONTROL) and not call.is_internal:
            call.limits = self.take(call.sandbox.name, call.headers.get(b"authorization"), call.peer)
        return self.app(scope, receive, send)

    def take(self, sandbox: str, authorization: bytes | None, peer: str | None) -> Headers:
        """Count a request and return the RateLimit headers. Raises Limited, with them and Retry-After."""
        now = monotonic()
        # A scheme's letters and the blanks after it do not make another caller.
        credential = (authorization or b"").partition(b" ")[2].strip() or str(peer).encode()
        caller = blake2b(credential, digest_size=16, key=sandbox.encode()[:64]).digest()
        window = self._windows.pop(caller, None)
        if window is None or window.ends <= now:
            window = Window(now + self.seconds, 0)
        is_over = window.used >= self.most
        window = window if is_over else Window(window.ends, window.used + 1)
        self._windows[caller] = window  # moved to the end, so that the caller that was idle longest is first
        if len(self._windows) > MOST_CALLERS:
            del self._windows[next(iter(self._windows))]
        left, seconds = self.most - window.used, ceil(window.ends - now)
        said = {"RateLimit-Policy": self._policy, "RateLimit": f'"default";r={left};t={seconds}'}
        if is_over:
            message = (
                f"More than {counted(self.most, 'request')} in {counted(self.seconds, 'second')}: "
                f"wait {counted(seconds, 'second')} (--rate-limit)."
            )
            raise Limited(message, headers={**said, "Retry-After": str(seconds)})
        return [(name.lower().encode(), value.encode()) for name, value in said.items()]
