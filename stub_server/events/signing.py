"""Signatures of Standard Webhooks 1.0: https://github.com/standard-webhooks/standard-webhooks."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable

PREFIX = "whsec_"


def new_key(random: bytes) -> str:
    """A signing key as a receiver keeps it; `random` has 24 to 64 bytes."""
    return PREFIX + b64encode(random).decode()


def sign(key: str, event_id: str, timestamp: int, body: bytes) -> str:
    """`v1,<base64>` over `{id}.{timestamp}.{body}`; the timestamp is in seconds since 1970."""
    secret = b64decode(key.removeprefix(PREFIX), validate=True)
    signed = b"%b.%d.%b" % (event_id.encode(), timestamp, body)
    return "v1," + b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


def signatures(keys: Iterable[str], event_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` header: one signature by each key, a receiver accepts any of them."""
    return " ".join(sign(key, event_id, timestamp, body) for key in keys)


def signed_headers(
    version: str, event_id: str, timestamp: int, signature: str, own: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The headers of one attempt; `own` are those that the merchant wants sent with each, `version` is the server's."""
    return [
        ("content-type", "application/json"),
        ("user-agent", f"membership-sandbox/{version}"),
        ("webhook-id", event_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", signature),
        *own,
    ]
