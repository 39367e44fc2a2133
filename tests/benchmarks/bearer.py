"""The token check of stock Connexion's server: `x-bearerInfoFunc` names it, and Connexion imports it."""

import time
from typing import Any

from stub_server.calls.credentials import Tokens
from stub_server.engine.sandbox import DEFAULT
from stub_server.settings import Settings

_tokens = Tokens(Settings().signing_secret(b""), time.time)


async def bearer_info(token: str) -> dict[str, Any]:
    """Whose a token is; what was verified once is remembered, as in the product."""
    caller = _tokens.caller(b"Bearer " + token.encode(), DEFAULT, time.time())
    return {"sub": caller.subject, "merchant_id": caller.merchant_id, "scope": " ".join(sorted(caller.scopes))}
