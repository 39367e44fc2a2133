"""What handlers can use of the server: its address, contracts, sandboxes and tokens."""

import hmac
from dataclasses import dataclass, field

from ..contract.document import Document
from ..engine.sandbox import Sandbox
from ..worlds.sandboxes import Sandboxes
from .tokens import Tokens

READY_FOR = 30 * 24 * 3600  # seconds


@dataclass(frozen=True, slots=True)
class Server:
    """One per application. `rate_limit` is (requests, seconds)."""

    version: str
    url: str
    document: Document
    control: Document
    sandboxes: Sandboxes
    tokens: Tokens
    loopback: bool
    rate_limit: tuple[int, int] | None = None
    admin_key: bytes | None = field(default=None, repr=False)

    def knows_admin(self, given: bytes | None) -> bool:
        """Whether this is the admin key; False if none is set."""
        return given is not None and self.admin_key is not None and hmac.compare_digest(given, self.admin_key)

    def ready_token(self, sandbox: Sandbox) -> str:
        """A JWT of a sandbox's seeded merchant with every scope, valid for thirty days."""
        merchant = sandbox.store.merchant
        return self.tokens.issue(sandbox.name, merchant.id, merchant.user_id, ["*"], READY_FOR)[0]
