"""Signatures of Standard Webhooks 1.0: https://github.com/standard-webhooks/standard-webhooks."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..version import __version__
from .ids import keyed_digest

PREFIX = "whsec_"
HeaderPairs = list[tuple[str, str]]
"""Names and values of headers, in their order."""
TOLERANCE = 300  # seconds that a timestamp may be off
_MOST_SIGNATURES = 50  # of a header that are looked at


def new_key(random: bytes) -> str:
    """A signing key as a receiver keeps it; `random` has 24 to 64 bytes."""
    return PREFIX + b64encode(random).decode()


def sign(key: str, event_id: str, timestamp: int, body: bytes) -> str:
    """`v1,<base64>` over `{id}.{timestamp}.{body}`; the timestamp is in seconds since 1970."""
    secret = b64decode(key.removeprefix(PREFIX), validate=True)
    signed = b"%b.%d.%b" % (event_id.encode(), timestamp, body)
    return "v1," + b64encode(keyed_digest(secret, signed)).decode()


def signatures(keys: Iterable[str], event_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` header: one signature by each key, a receiver accepts any of them."""
    return " ".join(sign(key, event_id, timestamp, body) for key in keys)


def signed_headers(
    event_id: str, timestamp: int, signature: str, own: Iterable[tuple[str, str]]
) -> HeaderPairs:
    """The headers of one attempt; `own` are those that the merchant wants sent with each."""
    return [
        ("content-type", "application/json"),
        ("user-agent", f"membership-sandbox/{__version__}"),
        ("webhook-id", event_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", signature),
        *own,
    ]


class Verdict(NamedTuple):
    """The result of verifying a message:

    `signer` is whose key matched; else `reason` and `message` say why.
    """

    signer: str | None
    reason: str | None = None
    message: str | None = None


def verify(
    headers: Mapping[str, str], body: bytes, keys: Iterable[tuple[str, str]], now: int
) -> Verdict:
    """Verify a message against pairs of signer and key.

    `headers` are by name in lower case; `now` is seconds since 1970 of the sender's clock.
    """
    unusable = _unusable(headers, now)
    if unusable is not None:
        return unusable
    timestamp = int(headers["webhook-timestamp"])
    given = [
        part
        for part in headers["webhook-signature"].encode().split(b" ")[:_MOST_SIGNATURES]
        if part[:3] == b"v1,"
    ]
    if not given:
        return Verdict(
            None,
            "signature_malformed",
            "webhook-signature has no signature of the form v1,<base64>.",
        )
    compared = 0
    for signer, key in keys:
        expected = sign(key, headers["webhook-id"], timestamp, body).encode()
        if any(hmac.compare_digest(expected, part) for part in given):
            return Verdict(signer)
        compared += 1
    if not compared:
        return Verdict(
            None, "no_webhooks", "This sandbox has no webhooks, so there is no key to verify with."
        )
    return Verdict(
        None,
        "no_key_matches",
        f"The signature matches no key of this sandbox's webhooks ({compared} tried).",
    )


def _unusable(headers: Mapping[str, str], now: int) -> Verdict | None:
    """The verdict on headers of which one is missing, or the timestamp is none or too far from
    now.
    """
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if not headers.get(name):
            return Verdict(None, "header_missing", f"The header {name} is missing.")
    sent = headers["webhook-timestamp"]
    if not (sent.isascii() and sent.isdigit() and len(sent) <= 12):
        return Verdict(
            None, "timestamp_invalid", "webhook-timestamp is not a number of seconds since 1970."
        )
    off = int(sent) - now
    if abs(off) <= TOLERANCE:
        return None
    reason, side = ("too_old", "behind") if off < 0 else ("too_new", "ahead of")
    return Verdict(
        None,
        reason,
        f"webhook-timestamp is {abs(off)} s {side} the machine's clock; {TOLERANCE} s are"
        " tolerated.",
    )
