"""Requests of the journal as an HTTP archive:

HAR 1.2, http://www.softwareishard.com/blog/har-12-spec/.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Sequence
from http.client import responses
from time import perf_counter
from urllib.parse import parse_qsl, quote

import orjson

from ...core.clock import iso
from ...core.record import Body
from ...core.slices import SLICE
from ...core.text import SAFE_IN_PATHS
from ...engine.kept import Trace
from ...version import __version__
from .entries import plain

Headers = Sequence[tuple[str, str]]


async def archive(traces: list[Trace], base_url: str) -> AsyncGenerator[bytes, None]:
    """The archive in pieces; others are served between them. `traces` are newest first.

    `base_url` is the address of the sandbox. Times are the machine's, as the clock of a sandbox may
    be frozen.
    """
    head = {"version": "1.2", "creator": {"name": "stub-server", "version": __version__}}
    yield b'{"log":' + orjson.dumps(head)[:-1] + b',"entries":['
    until = perf_counter() + SLICE
    while traces:
        yield orjson.dumps(_entry(traces.pop(), base_url))
        if traces:
            yield b","
        if perf_counter() >= until:
            await asyncio.sleep(0)
            until = perf_counter() + SLICE
    yield b"]}}"


def _entry(trace: Trace, base_url: str) -> Body:
    url = base_url + quote(plain(trace.path), safe=SAFE_IN_PATHS)
    return {
        **entry(
            (
                trace.method,
                url,
                trace.query.decode("latin-1"),
                trace.headers,
                trace.body or b"",
            ),
            (trace.status, trace.answer_headers, trace.answer or b""),
            iso(trace.received),
            trace.micros / 1000,
        ),
        "_requestId": trace.id,
        "_operationId": trace.operation,
        "_sandboxTime": iso(trace.at),
        "_simulated": trace.simulated,
    }


def entry(
    request: tuple[str, str, str, Headers, bytes],
    answer: tuple[int, Headers, bytes],
    started: str,
    took: float,
) -> Body:
    """An entry of an archive, in milliseconds.

    A request is method, URL, query, headers and body; an answer status, headers and body. A body of
    an answer that is no text is encoded as HAR says it; one of a request cannot be.
    """
    return {
        "startedDateTime": started,
        "time": took,
        "request": _request(*request),
        "response": _response(*answer),
        "cache": {},
        "timings": {"send": 0, "wait": took, "receive": 0},
    }


def _request(method: str, url: str, query: str, headers: Headers, body: bytes) -> Body:
    if query:
        url += f"?{query}"
    found = {
        "method": plain(method),
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(headers),
        "queryString": _pairs(parse_qsl(query, keep_blank_values=True, errors="replace")),
        "headersSize": -1,
        "bodySize": len(body),
    }
    if body:
        found["postData"] = {
            "mimeType": _named(headers, "content-type"),
            "text": body.decode("utf-8", "replace"),
        }
    return found


def _response(status: int, headers: Headers, body: bytes) -> Body:
    return {
        "status": status,
        "statusText": responses.get(status, ""),
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(headers),
        "content": {
            "size": len(body),
            "mimeType": _named(headers, "content-type"),
            **_content(body),
        },
        "redirectURL": _named(headers, "location") if 300 <= status < 400 else "",
        "headersSize": -1,
        "bodySize": len(body),
    }


def _pairs(headers: Headers) -> list[dict[str, str]]:
    return [{"name": plain(name), "value": plain(value)} for name, value in headers]


def _named(headers: Headers, name: str) -> str:
    return next((plain(value) for key, value in headers if key.lower() == name), "")


def _content(body: bytes) -> dict[str, str]:
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"text": b64encode(body).decode(), "encoding": "base64"}
