"""Reads the exchanges of an HTTP archive (HAR 1.2), and writes exchanges as one."""

from base64 import b64decode
from collections.abc import Iterable, Iterator
from operator import index
from pathlib import Path
from typing import Any

import httpx2
import orjson

from ...contract.secrets import REDACTED
from ...contract.source import read_text
from ...core.clock import iso, wall_ms
from ...core.problem import UnusableInput
from ...core.record import Body
from ...server.journal.archive import entry
from ...version import __version__
from .exchange import Answer, Exchange, Headers, Request, base_of

LARGEST = 64 * 1024 * 1024  # bytes of a file
# An archive has decoded bodies.
_OF_THE_TRANSFER = frozenset(("content-encoding", "content-length", "transfer-encoding"))


def read(file: Path, base_url: str | None = None) -> Iterator[Exchange | str]:
    """Read an archive: the requests below `base_url`, the parent of `/v2`, or all of them. Of an
    entry that cannot be judged, the reason.

    Raises UnusableInput.
    """
    text = read_text(file, str(file), LARGEST).removeprefix("\ufeff")
    try:
        entries = [*orjson.loads(text)["log"]["entries"]]
    except (ValueError, KeyError, TypeError):
        raise UnusableInput(
            f"{file}: is not an HTTP archive. Export the traffic as HAR 1.2."
        ) from None
    base = "" if base_url is None else str(httpx2.URL(base_of(base_url))).rstrip("/")
    for each in entries:
        try:
            yield _exchange(each, base)
        except (AttributeError, KeyError, TypeError, ValueError, httpx2.InvalidURL):
            yield "unreadable"


def archive_of(entries: Iterable[Body | orjson.Fragment]) -> bytes:
    """An archive with these entries."""
    head = {"version": "1.2", "creator": {"name": "stub-server", "version": __version__}}
    return orjson.dumps({"log": {**head, "entries": [*entries]}})


def entry_of(exchange: Exchange, base_url: str) -> Body:
    """An entry of an archive, of an exchange that has just ended."""
    request, answer = exchange
    made = entry(
        (request.method, base_url + request.path, request.query, request.headers, request.body),
        (answer.status, answer.headers, answer.body),
        iso(wall_ms() - int(answer.seconds * 1000)),
        answer.seconds * 1000,
    )
    # A body that is too large to search for secrets was replaced; a reader must not take the mark
    # for the body.
    if answer.body == REDACTED.encode():
        del made["response"]["content"]["text"]
    return made


def _exchange(found: Any, base: str) -> Exchange | str:
    """An entry as an exchange below an address, or the reason why it is left out.

    Raises AttributeError, KeyError, TypeError, ValueError and InvalidURL for an entry that cannot
    be read.
    """
    request, response = found["request"], found["response"]
    url, content = httpx2.URL(request["url"]), response["content"]
    status, text = index(response["status"]), content.get("text")  # 200.0 is none
    base = base or str(url.join("/")).rstrip("/")
    if not 100 <= status <= 999:
        return "without response"
    if not str(url).startswith(f"{base}/"):
        return "of another address"
    if text is None and content.get("size", 0) > 0:
        return "without the body of the response"
    path, _, query = str(url).partition("#")[0].removeprefix(base).partition("?")
    body = (text or "").encode()
    if content.get("encoding") == "base64":
        body = b64decode(body)
    sent = ((request.get("postData") or {}).get("text") or "").encode()
    return Exchange(
        Request(str(request["method"]), path, query, _headers(request), sent),
        Answer(status, _headers(response), body),
    )


def _headers(message: Any) -> Headers:
    found = []
    for each in message["headers"]:
        name, value = str(each["name"]), str(each["value"])
        if name[:1] != ":" and name.lower() not in _OF_THE_TRANSFER:
            found.append((name, value))
    return (*found,)
