"""RateLimit: how many requests a caller may send, with `--rate-limit`."""

from hashlib import blake2b

from ...core.problem import Limited
from ...core.text import counted
from ...core.windows import Windows
from ..reply import Answering, Headers
from ..request import CONTROL
from .way import Layer, Way


class RateLimit:
    """A caller is a credential, or an address without one, in one sandbox.

    The control surface has no limit.
    """

    def __init__(self, app: Layer, rule: tuple[int, int]) -> None:
        """`rule` is a number of requests and of seconds: a window begins with a caller's
        first request.
        """
        most, seconds = rule
        self.app, self.most, self.seconds = app.__call__, most, seconds
        self._policy = f'"default";q={most};w={seconds}'
        self._windows = Windows(seconds)

    def __call__(self, way: Way) -> Answering:
        if not way.path.startswith(CONTROL) and not way.request.is_internal:
            way.limits = self._take(way)
        return self.app(way)

    def _take(self, way: Way) -> Headers:
        """Count a request and return the RateLimit headers.

        Raises Limited, with these and Retry-After.
        """
        # Neither the case of the scheme nor blanks after it make another caller.
        sent = way.headers.get(b"authorization", b"").partition(b" ")[2].strip()
        sent = sent or way.request.peer.encode()
        caller = blake2b(sent, digest_size=16, key=way.sandbox.name.encode()[:64]).digest()
        used, seconds = self._windows.count(caller)
        left = max(0, self.most - used)
        headers = {"RateLimit-Policy": self._policy, "RateLimit": f'"default";r={left};t={seconds}'}
        if used > self.most:
            raise Limited(
                f"More than {counted(self.most, 'request')} in {counted(self.seconds, 'second')}: "
                f"wait {counted(seconds, 'second')}.",
                headers={**headers, "Retry-After": str(seconds)},
            )
        return [(name.lower().encode(), value.encode()) for name, value in headers.items()]
