"""Webhook addresses that lead nowhere: a made-up one may be somebody's."""

from typing import Any
from urllib.parse import urlsplit, urlunsplit

# A port that nothing listens on: a delivery is refused at once, and no request ever leaves this machine.
NOWHERE = "127.0.0.1:9"


def harmless(operation: str, body: Any) -> Any:
    """The body of a webhook or a certification with an address on a host that never answers."""
    if operation not in ("createWebhook", "updateWebhook", "certifyReceiver") or not isinstance(body, dict):
        return body
    url = body.get("url")
    return body | {"url": _nowhere(url)} if isinstance(url, str) and _nowhere(url) != url else body


def _nowhere(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    plain = parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc and url.isprintable()
    if not plain or len(url) > 2048:
        return url
    return urlunsplit(parts._replace(netloc=NOWHERE))[:2048]
