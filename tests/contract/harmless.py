"""Webhook addresses that lead nowhere: a made-up one may be somebody's."""

from typing import Any
from urllib.parse import urlsplit, urlunsplit

# A port that nothing listens on: a delivery is refused at once, and no request ever leaves this
# machine.
NOWHERE = "127.0.0.1:9"
_POSTING = ("createWebhook", "updateWebhook", "certifyReceiver")


def harmless(operation: str, body: Any) -> Any:
    """The body of a webhook or a certification with an address on a host that never answers."""
    if operation not in _POSTING or not isinstance(body, dict):
        return body
    urls = {name: body[name] for name in ("url", "effects") if isinstance(body.get(name), str)}
    return body | {name: _nowhere(url) for name, url in urls.items()}


def _nowhere(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    plain = (
        parts.scheme in ("http", "https")
        and parts.netloc
        and "@" not in parts.netloc
        and url.isprintable()
    )
    if not plain or len(url) > 2048:
        return url
    return urlunsplit(parts._replace(netloc=NOWHERE))[:2048]
