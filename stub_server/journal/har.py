"""Requests of the journal as an HTTP archive: HAR 1.2, http://www.softwareishard.com/blog/har-12-spec/."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from http import HTTPStatus
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson

from ..engine.journal import Trace
from ..kernel.clock import iso
from ..kernel.slices import SLICE
from .showing import plain

CHUNK = 64 * 1024  # bytes


async def archive(traces: list[Trace], base_url: str, version: str) -> AsyncGenerator[bytes, None]:
    """The archive in chunks; others are served between them. `traces` are newest first, and let go as they are told.

    `base_url` is the address of the world. Times are the machine's: those of a sandbox may stand still.
    """
    head = {"version": "1.2", "creator": {"name": "stub-server", "version": version}}
    parts = [b'{"log":', orjson.dumps(head)[:-1], b',"entries":[']
    size, until = 0, perf_counter() + SLICE
    while traces:
        trace = traces.pop()
        entry = orjson.dumps(_entry(trace, base_url))
        parts += (entry, b"," if traces else b"")
        size += len(entry)
        if size >= CHUNK:
            yield b"".join(parts)
            parts, size = [], 0
        if perf_counter() >= until:
            await asyncio.sleep(0)
            until = perf_counter() + SLICE
    yield b"".join((*parts, b"]}}"))


def _entry(trace: Trace, base_url: str) -> dict[str, Any]:
    took = trace.micros / 1000
    query = trace.query.decode("latin-1")
    sent, answered = trace.headers, trace.answer_headers
    return {
        "startedDateTime": iso(trace.received),
        "time": took,
        "request": {
            "method": plain(trace.method),
            "url": base_url + quote(plain(trace.path), safe="/:@!$&'()*+,;=~-._") + (f"?{query}" if query else ""),
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _pairs(sent),
            "queryString": _pairs(parse_qsl(query, keep_blank_values=True, errors="replace")),
            **(
                {"postData": {"mimeType": dict(sent).get("content-type", ""), "text": _text(trace.body)}}
                if trace.body
                else {}
            ),
            "headersSize": -1,
            "bodySize": len(trace.body or b""),
        },
        "response": {
            "status": trace.status,
            "statusText": HTTPStatus(trace.status).phrase if trace.status in _STATUSES else "",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _pairs(answered),
            "content": {
                "size": len(trace.answer or b""),
                "mimeType": dict(answered).get("content-type", ""),
                "text": _text(trace.answer),
            },
            "redirectURL": dict(answered).get("location", "") if 300 <= trace.status < 400 else "",
            "headersSize": -1,
            "bodySize": len(trace.answer or b""),
        },
        "cache": {},
        "timings": {"send": 0, "wait": took, "receive": 0},
        "_requestId": trace.id,
        "_operationId": trace.operation,
        "_sandboxTime": iso(trace.at),
        "_simulated": trace.simulated,
    }


_STATUSES = frozenset(int(status) for status in HTTPStatus)


def _pairs(headers: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": plain(name), "value": plain(value)} for name, value in headers]


def _text(body: bytes | None) -> str:
    return (body or b"").decode("utf-8", "replace")
