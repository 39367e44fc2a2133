"""Reads the exchanges of an HTTP archive (HAR 1.2), and writes exchanges as one."""

from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import orjson

from ...contract.secrets import REDACTED
from ...core.clock import iso
from ...core.problem import UnusableInput
from ...server.journal.archive import entry
from ...version import __version__
from .exchange import Answer, Exchange, Headers, Request, base_of

LARGEST = 64 * 1024 * 1024  # bytes of a file
_PORTS = {"http": 80, "https": 443}
# An archive has decoded bodies.
_OF_THE_TRANSFER = frozenset(("content-encoding", "content-length", "transfer-encoding"))
_BODILESS = frozenset((204, 304))


class BadHar(UnusableInput):
    """A file is not an archive. The message is one line, and says what to do."""


class Archive(NamedTuple):
    """The exchanges of an archive with a backend.

    `left_out` counts the entries that cannot be judged, by reason.
    """

    exchanges: list[Exchange]
    left_out: dict[str, int]


def read(file: Path, base_url: str | None = None) -> Archive:
    """Read an archive: the requests below `base_url`, the parent of `/v2`, or all of them.

    Raises BadHar.
    """
    try:
        with file.open("rb") as source:
            data = source.read(LARGEST + 1)
    except OSError as error:
        raise BadHar(f"{file}: {error.strerror or error}.") from None
    if len(data) > LARGEST:
        raise BadHar(
            f"{file}: is larger than {LARGEST // 1024 // 1024} MB. Record less, or split it."
        )
    try:
        whole = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise BadHar(
            f"{file}: is not JSON: {str(error)[:200]}. Export the traffic as HAR 1.2."
        ) from None
    entries = _member(_member(whole, "log"), "entries")
    if not isinstance(entries, list):
        raise BadHar(f"{file}: has no log.entries. Export the traffic as HAR 1.2.")
    base = None if base_url is None else urlsplit(base_of(base_url))
    exchanges: list[Exchange] = []
    left_out: Counter[str] = Counter()
    for each in entries:
        found = _exchange(each, base)
        if isinstance(found, str):
            left_out[found] += 1
        else:
            exchanges.append(found)
    return Archive(exchanges, dict(left_out))


def archive(exchanges: Iterable[tuple[Exchange, float]], base_url: str) -> bytes:
    """Exchanges as an archive, each with its moment in seconds since 1970.

    The caller has removed secrets.
    """
    return archive_of([entry_of(exchange, at, base_of(base_url)) for exchange, at in exchanges])


def archive_of(entries: list[dict[str, Any]]) -> bytes:
    """An archive with these entries."""
    head = {"version": "1.2", "creator": {"name": "stub-server", "version": __version__}}
    return orjson.dumps({"log": {**head, "entries": entries}})


def entry_of(exchange: Exchange, at: float, base_url: str) -> dict[str, Any]:
    """An entry of an archive."""
    request, answer = exchange
    made = entry(
        (request.method, base_url + request.path, request.query, request.headers, request.body),
        (answer.status, answer.headers, answer.body),
        iso(int(at * 1000)),
        answer.seconds * 1000,
    )
    # A body that is too large to search for secrets was replaced; a reader must not take the mark
    # for the body.
    if answer.body == REDACTED.encode():
        del made["response"]["content"]["text"]
    return made


def _exchange(found: Any, base: SplitResult | None) -> Exchange | str:
    """An entry as an exchange, or the reason why it is not one."""
    request, response = _member(found, "request"), _member(found, "response")
    method, url, status = (
        _member(request, "method"),
        _member(request, "url"),
        _member(response, "status"),
    )
    if not isinstance(method, str) or not isinstance(url, str):
        return "without request"
    if not isinstance(status, int) or not 100 <= status <= 999:
        return "without response"
    try:
        parts = urlsplit(url)
        path = parts.path if base is None else _path_below(parts, base)
        body = _body(
            _member(response, "content"), is_expected=method != "HEAD" and status not in _BODILESS
        )
    except ValueError:
        return "unreadable"
    if path is None:
        return "of another address"
    if body is None:
        return "without the body of the response"
    sent = _member(_member(request, "postData"), "text")
    took = _member(found, "time")
    return Exchange(
        Request(
            method,
            path or "/",
            parts.query,
            _headers(request),
            sent.encode() if isinstance(sent, str) else b"",
        ),
        Answer(
            status, _headers(response), body, took / 1000 if isinstance(took, int | float) else 0.0
        ),
    )


def _path_below(parts: SplitResult, base: SplitResult) -> str | None:
    """The path of an address below a base address, or None if it is elsewhere.

    Raises ValueError.
    """
    if _origin(parts) != _origin(base) or not parts.path.startswith(f"{base.path}/"):
        return None
    return parts.path[len(base.path) :]


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _body(content: Any, *, is_expected: bool) -> bytes | None:
    """The body of a response; None if the archive has only its size. Raises ValueError."""
    text, size = _member(content, "text"), _member(content, "size")
    if not isinstance(text, str):
        return None if is_expected and isinstance(size, int | float) and size > 0 else b""
    return b64decode(text) if _member(content, "encoding") == "base64" else text.encode()


def _headers(message: Any) -> Headers:
    found = _member(message, "headers")
    pairs = [
        (_member(each, "name"), _member(each, "value"))
        for each in (found if isinstance(found, list) else ())
    ]
    return tuple(
        (name, value)
        for name, value in pairs
        if isinstance(name, str)
        and isinstance(value, str)
        and name[:1] != ":"
        and name.lower() not in _OF_THE_TRANSFER
    )


def _member(node: Any, name: str) -> Any:
    return node.get(name) if isinstance(node, Mapping) else None
