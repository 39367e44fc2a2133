"""Judges what a proxy has passed on, in a thread of its own: a line for each exchange, and the newest ones are kept."""

from __future__ import annotations

import threading
import zlib
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import parse_qs

import orjson

from ..contract.document import Document
from ..kernel.clock import iso
from .exchange import Answer, Exchange, Headers
from .findings import Report
from .har import archive
from .http1 import JUDGED
from .observed import Observed
from .proxy import OWN, Passed
from .showing import Showing

KEPT, MOST_BYTES = 1_000, 32 * 1024 * 1024
"""Exchanges that are kept, and bytes of them."""
WAITING, MOST_WAITING = 2_000, 64 * 1024 * 1024  # exchanges that wait to be judged, and bytes of them
_QUIET, _LONGEST_WAIT = 0.005, 5.0  # seconds without a request before one is judged, and the longest wait for them
_OVERHEAD = 1_000  # bytes of an exchange without bodies and headers
_ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class Watching:
    """One per proxy. `say` is called with the line of each exchange."""

    def __init__(self, document: Document, target: str, say: Callable[[str], None]) -> None:
        self._observed = Observed(document, target, "proxy")
        self._showing, self._target, self._say = Showing(document, target), target, say
        self._began = self._latest = time()
        self.unjudged: Counter[str] = Counter()
        """How many exchanges were not judged, by reason."""
        self._waiting: deque[Passed] = deque()
        self._kept: deque[tuple[Passed, list[str]]] = deque()
        self._waiting_bytes = self._kept_bytes = 0
        self._lock, self._changed = threading.Lock(), threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="judging", daemon=True)
        self._thread.start()

    def passed(self, passed: Passed) -> None:
        """Take an exchange, without waiting."""
        size = _size(passed)
        with self._changed:
            if len(self._waiting) >= WAITING or self._waiting_bytes + size > MOST_WAITING:
                self.unjudged["more requests than could be judged"] += 1
                return
            self._waiting.append(passed)
            self._waiting_bytes += size
            self._latest = time()
            self._changed.notify()

    def report(self) -> Report:
        """Judge what still waits, and report."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()
        return self._observed.report(time() - self._began)

    async def correct(self, report: Report, overlays: tuple[Path, ...]) -> None:
        """Set the actions of the divergences that an overlay closes, each proved."""
        await self._observed.correct(report, overlays)

    def own(self, path: str, query: str) -> tuple[int, bytes]:
        """Answer a request for what was seen, newest last: as JSON, or with `format=har` as an archive."""
        form = parse_qs(query).get("format", ["json"])[-1]
        if path != f"{OWN}exchanges" or form not in ("json", "har"):
            message = f"Ask for {OWN}exchanges or {OWN}exchanges?format=har."
            return 404, orjson.dumps({"error": True, "message": message})
        with self._lock:
            kept = [*self._kept]
        redacted = [(self._showing.redacted(passed.exchange), passed, classes) for passed, classes in kept]
        if form == "har":
            return 200, archive(((exchange, passed.at) for exchange, passed, _ in redacted), self._target)
        rows = [_row(exchange, passed, classes) for exchange, passed, classes in redacted]
        return 200, orjson.dumps({"exchanges": rows})

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._may_judge():
                    if self._is_closing and not self._waiting:
                        return
                    self._changed.wait(_QUIET if self._waiting else None)
                passed = self._waiting.popleft()
                self._waiting_bytes -= _size(passed)
            self._judge(passed)

    def _may_judge(self) -> bool:
        """Whether to judge now: judging slows down requests that pass meanwhile."""
        if not self._waiting:
            return False
        now, waits_long = time(), len(self._waiting) > WAITING // 2 or self._waiting_bytes > MOST_WAITING // 2
        return (
            self._is_closing or waits_long or now - self._latest > _QUIET or now - self._waiting[0].at > _LONGEST_WAIT
        )

    def _judge(self, passed: Passed) -> None:
        request, answer = passed.exchange
        unread = passed.unread
        if unread is None:
            body = decoded(answer)
            if body is None:
                unread = f"a body encoded as {answer.header('content-encoding')}"[:80]
            else:
                passed = passed._replace(exchange=Exchange(request, answer._replace(body=body)))
        classes: list[str] = []
        if unread is None:
            classes = list(dict.fromkeys(finding.kind for finding in self._observed.judge(passed.exchange)))
        else:
            self.unjudged[unread] += 1
        self._keep(passed._replace(unread=unread), classes)
        word = f"not judged: {unread}" if unread else ", ".join(classes) or "ok"
        self._say(f"{request.method:<6} {self._showing.line(request)}  {answer.status or '---'}  {word}")

    def _keep(self, passed: Passed, classes: list[str]) -> None:
        with self._lock:
            self._kept.append((passed, classes))
            self._kept_bytes += _size(passed)
            while len(self._kept) > KEPT or self._kept_bytes > MOST_BYTES:
                self._kept_bytes -= _size(self._kept.popleft()[0])


def decoded(answer: Answer) -> bytes | None:
    """The decoded body of an answer; None if its encoding is unknown, or the body is too large."""
    body = answer.body
    named = ",".join(answer.headers_named("content-encoding")).lower()
    for encoding in reversed([each.strip() for each in named.split(",") if each.strip() not in ("", "identity")]):
        bits = _ENCODINGS.get(encoding)
        if bits is None:
            return None
        if bits == 15 and not _has_zlib_head(body):  # some send deflate without its head
            bits = -15
        try:
            decoder = zlib.decompressobj(bits)
            body = decoder.decompress(body, JUDGED + 1)
        except zlib.error:
            return None
        if len(body) > JUDGED or not decoder.eof:
            return None
    return body


def _has_zlib_head(body: bytes) -> bool:
    return len(body) >= 2 and body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0


def _size(passed: Passed) -> int:
    request, answer = passed.exchange
    headers = sum(len(name) + len(value) for name, value in (*request.headers, *answer.headers))
    return _OVERHEAD + headers + len(request.path) + len(request.query) + len(request.body) + len(answer.body)


def _row(exchange: Exchange, passed: Passed, classes: list[str]) -> dict[str, Any]:
    request, answer = exchange
    return {
        "at": iso(int(passed.at * 1000)),
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "status": answer.status or None,
        "milliseconds": round(answer.seconds * 1000, 3),
        "classes": classes,
        "not_judged": passed.unread,
        "request": _message(request.headers, request.body),
        "response": _message(answer.headers, answer.body),
    }


def _message(headers: Headers, body: bytes) -> dict[str, Any]:
    return {
        "headers": [{"name": name, "value": value} for name, value in headers],
        "body": body.decode("utf-8", "replace") if body else None,
    }
