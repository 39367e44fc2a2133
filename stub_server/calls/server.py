"""What a handler may ask of the server itself: its address, its contract, its worlds, and tokens."""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from ..contract.document import Document
from ..engine.sandbox import Sandbox
from ..engine.sandboxes import Sandboxes

READY_FOR = 30 * 24 * 3600  # seconds


class Issuer(Protocol):
    """Makes tokens."""

    def issue(
        self, sandbox: str, merchant_id: str, user_id: str, scopes: Iterable[str], expires_in: int, serial: int = 0
    ) -> tuple[str, int]:
        """A token and the second of its expiry."""


@dataclass(frozen=True, slots=True)
class Server:
    """One per application."""

    version: str
    url: str
    document: Document
    control: Document
    sandboxes: Sandboxes
    tokens: Issuer
    loopback: bool
    admin_key: bytes | None = field(default=None, repr=False)

    def knows_admin(self, given: bytes | None) -> bool:
        """Whether this is the admin key. There is none to know where none is set."""
        return given is not None and self.admin_key is not None and hmac.compare_digest(given, self.admin_key)

    def ready_token(self, sandbox: Sandbox) -> str:
        """A JWT of a sandbox's seeded merchant with every scope, valid for thirty days."""
        merchant = sandbox.store.merchant
        return self.tokens.issue(sandbox.name, merchant.id, merchant.user_id, ["*"], READY_FOR)[0]
