"""What handlers can use of the server: its address, contracts, sandboxes and tokens, and
places to wait.
"""

import hmac
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from ..contract.document import Document
from ..contract.schema import Schemas
from ..core.problem import Limited
from ..core.record import Body
from ..core.slices import Turns
from ..core.text import counted
from ..core.windows import Windows
from ..engine.kept import Trace
from ..engine.sandbox import DEFAULT, Sandbox
from ..engine.tables.store import Merchant
from ..settings import Settings
from ..webhooks.courier import Courier
from ..webhooks.sender import Sender
from .request import Requests
from .sandboxes.sandboxes import Sandboxes
from .tokens import Tokens

OF_SANDBOX, IN_ALL = 64, 384  # requests that wait
FOR_ANYBODY = 16  # of a sandbox, for a QR image or a contract: these need no credential
MOST_WRONG = 10  # keys of an address in a minute
READY_FOR = 30 * 24 * 3600  # seconds


class Waiting:
    """How many requests wait, of each sandbox and in all, limited so that others always
    find a connection.
    """

    def __init__(self, connections: int) -> None:
        """`connections` are the most that the server has."""
        self._most = min(IN_ALL, max(1, connections * 3 // 4))
        self._counts: Counter[str] = Counter()
        self.turns = Turns()
        """When those go on that need no place."""

    @contextmanager
    def take(self, sandbox: str = "", *, for_anybody: bool = False) -> Iterator[None]:
        """A place for a request that waits; without a sandbox for one that another server answers.

        Raises Limited when none is free.
        """
        own = FOR_ANYBODY if for_anybody else OF_SANDBOX
        if sandbox and self._counts[sandbox] >= own:
            raise _too_many(own, " of this sandbox")
        if self._counts.total() >= self._most:
            raise _too_many(self._most, "")
        self._counts[sandbox] += 1
        try:
            yield
        finally:
            self._counts -= Counter([sandbox])  # which leaves out what is 0


def _too_many(most: int, whose: str) -> Limited:
    return Limited(
        f"{most} requests{whose} are already waiting, which is the maximum.",
        headers={"Retry-After": "1"},
    )


class Closing(Event):
    """Set when the server begins to stop, `since` a monotonic time."""

    since: float | None = None
    is_announced = False
    """Whether the server is going to stop: it is not ready any more, but serves until
    this event is set.
    """

    def __init__(self, drain: float) -> None:
        """`drain` is how many seconds the server goes on after SIGTERM, not ready, so that a proxy
        sends nothing more.
        """
        super().__init__()
        self.drain = drain

    def set(self) -> None:
        self.is_announced, self.since = True, self.since or monotonic()
        super().set()


@dataclass(frozen=True, slots=True)
class Guard:
    """Knows the admin key, and counts wrong keys where the server `is_public`; elsewhere keys
    follow from the seed.
    """

    is_public: bool
    admin_key: bytes | None = field(default=None, repr=False)
    _wrong: Windows = field(default_factory=partial(Windows, 60))  # admin and control keys

    def knows_admin(self, given: bytes | None) -> bool:
        """Whether this is the admin key; False if none is set."""
        return (
            given is not None
            and self.admin_key is not None
            and hmac.compare_digest(given, self.admin_key)
        )

    def count_wrong_key(self, address: str) -> None:
        """Count a wrong admin or control key of an address on a public server.

        Raises Limited after ten in a minute.
        """
        if not self.is_public:
            return
        count, wait = self._wrong.count(address)
        if count > MOST_WRONG:
            raise Limited(
                f"Too many wrong keys from this address: wait {counted(wait, 'second')}. The right"
                " one works at once.",
                headers={"Retry-After": str(wait)},
            )


@dataclass(frozen=True, slots=True)
class Underway:
    """What goes on for long, of which only so many may at once: the sandboxes in which a receiver
    is being certified, the readers of streams, and files that are being written or downloaded, each
    with its sandbox.
    """

    certifying: set[str] = field(default_factory=set)
    followers: set[Any] = field(default_factory=set)
    downloads: WeakKeyDictionary[Any, str] = field(default_factory=WeakKeyDictionary)


@dataclass(frozen=True, slots=True)
class Server:
    """One per application.

    `courier` sends deliveries that are due. `explain` says why a request was refused, None for one
    that was not. Unless it `waits`, no answer is delayed.
    """

    settings: Settings
    guard: Guard
    document: Document
    schemas: Schemas
    control: Document
    sandboxes: Sandboxes
    tokens: Tokens
    courier: Courier
    explain: Callable[["Server", Sandbox, Trace], Awaitable[Body | None]]
    requests: Requests  # counts of the requests that were answered
    waiting: Waiting  # places of requests that wait
    closing: Closing  # set when the server stops: no request waits any longer
    waits: bool = True
    underway: Underway = field(default_factory=Underway)
    listeners: list[Callable[[Trace], None]] = field(default_factory=list)
    """Called with every request that has been answered."""

    def silent(self) -> "Server":
        """The same server, from which nothing is sent."""
        mute = Sender(local=False, mute=True)
        return replace(self, courier=Courier(mute, mute))

    def url_of(self, sandbox: Sandbox) -> str:
        """The base URL of a sandbox."""
        return self.settings.url + ("" if sandbox.name == DEFAULT else f"/s/{sandbox.name}")

    def ready_token(self, sandbox: Sandbox, merchant: Merchant | None = None) -> str:
        """A JWT with every scope, valid for thirty days, of a merchant of a sandbox, or else of its
        seeded one.
        """
        merchant = merchant or sandbox.store.merchant
        return self.tokens.issue(sandbox, merchant.id, merchant.user_id, ["*"], READY_FOR)[0]
