"""What handlers can use of the server: its address, contracts, sandboxes and tokens."""

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import Any
from weakref import WeakSet

from ..contract.document import Document
from ..contract.schema import Schemas
from ..delivery.courier import Courier
from ..engine.sandbox import Sandbox
from ..events.sender import Sender
from ..kernel.trace import Trace
from ..worlds.sandboxes import Sandboxes
from .tokens import Tokens
from .waiting import Waiting

Explain = Callable[["Server", Sandbox, Any], Awaitable[dict[str, Any] | None]]
"""Says why a request was refused; None for one that was not."""
READY_FOR = 30 * 24 * 3600  # seconds


class Closing(Event):
    """Set when the server begins to stop, `since` a moment of the monotonic clock."""

    since: float | None = None

    def set(self) -> None:
        """The server stops."""
        self.since = self.since or monotonic()
        super().set()


@dataclass(frozen=True, slots=True)
class Server:
    """One per application. `rate_limit` is so many requests in so many seconds.

    `courier` sends what is due, `sender_abroad` what a page of another machine asks for; `explain` explains refusals;
    `behaviour` is what of the settings shapes answers. Unless it `waits`, no answer is delayed.
    """

    version: str
    url: str
    document: Document
    schemas: Schemas
    control: Document
    sandboxes: Sandboxes
    tokens: Tokens
    courier: Courier
    sender_abroad: Sender
    explain: Explain
    loopback: bool
    behaviour: Mapping[str, Any]
    rate_limit: tuple[int, int] | None = None
    waits: bool = True
    admin_key: bytes | None = field(default=None, repr=False)
    waiting: Waiting = field(default_factory=Waiting)
    """Requests that wait for something."""
    closing: Closing = field(default_factory=Closing)
    """Set when the server stops: a request that waits for something waits no longer."""
    certifying: set[str] = field(default_factory=set)
    """The sandboxes in which a receiver is being certified."""
    listeners: list[Callable[[Trace, Sequence[str]], None]] = field(default_factory=list)
    """Called with every request once it is answered, and its warnings."""
    followers: set[Any] = field(default_factory=set)
    """The readers of streams."""
    downloads: WeakSet[Any] = field(default_factory=WeakSet)
    """Files that are packed, or on their way to a reader."""

    @property
    def sender(self) -> Sender:
        """What posts deliveries."""
        return self.courier.sender

    def knows_admin(self, given: bytes | None) -> bool:
        """Whether this is the admin key; False if none is set."""
        return given is not None and self.admin_key is not None and hmac.compare_digest(given, self.admin_key)

    def ready_token(self, sandbox: Sandbox) -> str:
        """A JWT of a sandbox's seeded merchant with every scope, valid for thirty days."""
        merchant = sandbox.store.merchant
        return self.tokens.issue(sandbox.name, merchant.id, merchant.user_id, ["*"], READY_FOR)[0]
