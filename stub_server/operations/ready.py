"""The token that is ready at start: the banner prints it, `/_sandbox/credentials` answers one like it."""

from ..sandbox import Sandbox
from .server import Server

READY_FOR = 30 * 24 * 3600  # seconds


def ready_token(server: Server, sandbox: Sandbox) -> str:
    """A JWT of a sandbox's seeded merchant with every scope, valid for thirty days."""
    merchant = sandbox.store.merchant
    token, _ = server.tokens.issue(sandbox.name, merchant.id, merchant.user_id, ["*"], READY_FOR)
    return token
