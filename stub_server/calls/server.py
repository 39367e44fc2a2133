"""What a handler may ask of the server itself: its address, its contract, its worlds, and tokens."""

from dataclasses import dataclass

from ..contract.document import Document
from ..engine.sandbox import Sandbox
from ..worlds.sandboxes import Sandboxes
from .tokens import Tokens

READY_FOR = 30 * 24 * 3600  # seconds


@dataclass(frozen=True, slots=True)
class Server:
    """One per application."""

    version: str
    url: str
    document: Document
    control: Document
    sandboxes: Sandboxes
    tokens: Tokens
    loopback: bool

    def ready_token(self, sandbox: Sandbox) -> str:
        """A JWT of a sandbox's seeded merchant with every scope, valid for thirty days."""
        merchant = sandbox.store.merchant
        return self.tokens.issue(sandbox.name, merchant.id, merchant.user_id, ["*"], READY_FOR)[0]
