"""The token check of stock Connexion's server:

`x-bearerInfoFunc` names it, and Connexion imports it.
"""

from typing import Any

from stub_server.server.tokens import Tokens
from stub_server.settings import Settings

_tokens = Tokens(Settings().signing_secret(b""))


async def bearer_info(token: str) -> dict[str, Any]:
    """Whose a token is; what was verified once is remembered, as in the product."""
    authorization = b"Bearer " + token.encode()
    caller = _tokens.verified(authorization)
    return {
        "sub": caller.identity.subject,
        "merchant_id": caller.identity.merchant_id,
        "scope": " ".join(sorted(caller.scopes)),
    }
