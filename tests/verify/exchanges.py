"""Exchanges for tests, made by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from stub_server.tools.verify.exchange import Answer, Exchange, Request
from stub_server.tools.verify.har import archive_of, entry_of

from ..support.contract import document

TOKEN = "Bearer the-token-of-a-shop"
HEADERS = {"Content-Type": "application/json", "X-Request-Id": "req_1"}


def exchange(
    method: str,
    path: str,
    status: int,
    body: Any,
    headers: Mapping[str, str] = HEADERS,
    sent: bytes = b"",
) -> Exchange:
    """An exchange; a body that is no bytes is JSON."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    path, _, query = path.partition("?")
    request = Request(method, path, query, (("Authorization", TOKEN),), sent)
    return Exchange(request, Answer(status, tuple(headers.items()), content))


def example(name: str) -> Any:
    """The value of an example of the contract, to be changed."""
    return orjson.loads(orjson.dumps(document().raw["components"]["examples"][name]["value"]))


def archive(exchanges: Iterable[Exchange], base_url: str) -> bytes:
    """Exchanges as an HTTP archive."""
    return archive_of([entry_of(each, base_url) for each in exchanges])
