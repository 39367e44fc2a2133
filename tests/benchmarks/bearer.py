"""The token check of stock Connexion's server: `x-bearerInfoFunc` names it, and Connexion imports it."""

import time
from typing import Any

from stub_server.calls.tokens import Tokens
from stub_server.settings import Settings

_tokens = Tokens(Settings().signing_secret(b""), time.time)


async def bearer_info(token: str) -> dict[str, Any]:
    """The claims of a token; what was verified once is remembered, as in the product."""
    return dict(_tokens.claims(token))
