"""The report of traffic that others sent, recorded or through a proxy. Each exchange is compared with the contract.

What a proxy has passed on is judged in a thread of its own: a line for each exchange, and the newest ones are kept.
"""

import threading
import zlib
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from time import sleep, time
from typing import Any
from urllib.parse import parse_qs

import orjson

from ...app import data_dir
from ...contract import bundle
from ...contract.document import Document
from ...core.clock import iso
from .conformity import Conformity
from .correcting import Candidate, Candidates
from .exchange import Answer, Exchange, Headers
from .findings import GROUPS, Finding, Report, contract_of
from .har import archive
from .merging import merged
from .proxy import JUDGED, OWN, Passed
from .showing import Showing
from .where import Where

MOST = 5_000  # different findings
EXAMPLES = 64 * 1024 * 1024  # bytes of exchanges that are kept, to prove corrections
_OVERHEAD = 2_000  # bytes of an exchange without its bodies
_SEED = 1
KEPT, MOST_BYTES = 1_000, 32 * 1024 * 1024
"""Exchanges of a proxy that are kept, and bytes of them."""
MOST_WAITING = 64 * 1024 * 1024  # bytes of exchanges that wait to be judged
_QUIET, _LONGEST_WAIT = 0.005, 5.0  # seconds without a request before one is judged, and the longest wait for them
_ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class Observed:
    """One per report. It shows no values of records: they belong to the sender of the traffic."""

    def __init__(self, document: Document, target: str, mode: str, overlays: tuple[Path, ...] = ()) -> None:
        """`mode` is `har` or `proxy`; `overlays` are applied to the document already."""
        self.requests = 0
        self._document, self._target, self._mode, self._overlays = document, target, mode, overlays
        self._conformity = Conformity(document, Showing(document, target, values=False))
        self._found: dict[tuple[str, ...], Finding] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._groups: dict[tuple[str, str], bool] = {}
        self._reached: set[tuple[str, int]] = set()
        self._examples: dict[Hashable, Exchange] = {}
        self._room = EXAMPLES

    def judge(self, exchange: Exchange) -> list[Finding]:
        """In what an exchange departs. Requests that are no operation are not counted."""
        operation = self._conformity.operation_of(exchange.request.method, exchange.request.path)
        status = exchange.answer.status
        group = "accepts" if status < 400 or status >= 500 else "rejects"
        findings = self._conformity.findings(exchange, operation, group)
        for finding in findings:
            key = (finding.kind, finding.operation, group, finding.pointer, finding.cause)
            if key in self._found or len(self._found) < MOST:
                self._found.setdefault(key, finding)
                self._counts[key] += 1
                self._keep(key, exchange)
        if operation is not None:
            self.requests += 1
            self._reached.add((operation.id, status))
            self._keep((operation.id, status), exchange)
            self._groups[operation.id, group] = self._groups.get((operation.id, group), True) and not findings
        return findings

    def report(self, seconds: float) -> Report:
        """The report of what was seen until now. Its coverage is the share of all documented statuses."""
        findings = [finding for key, finding in self._found.items() for _ in range(self._counts[key])]
        documented = {(o.id, status) for o in self._document.operations.values() for status in o.responses}
        seen = [name for name in self._document.operations if any((name, group) in self._groups for group in GROUPS)]
        divergences = merged(findings, self._document, seen)
        Where(data_dir("openapi"), self._document, self._overlays).locate(divergences)
        return Report(
            target=self._target,
            contract=contract_of(self._document),
            mode=self._mode,
            seed=0,
            seconds=seconds,
            requests=self.requests,
            exit=1 if findings else 0 if self.requests else 3,
            coverage=100 * len(documented & self._reached) / (len(documented) or 1),
            rows={name: {group: self._state(name, group) for group in GROUPS} for name in seen},
            unreached=[],
            divergences=divergences,
        )

    async def correct(self, report: Report) -> None:
        """Set the actions of the divergences that an overlay closes.

        Each is proved: one exchange of each finding and status is compared with the corrected contract.
        """
        if self._room < 0:
            return

        async def ask(_: list[Candidate], file: Path) -> Collection[Finding]:
            document = Document(bundle.contracts(data_dir("openapi"), (*self._overlays, file))[0])
            again = Observed(document, self._target, self._mode)
            return [finding for exchange in self._examples.values() for finding in again.judge(exchange)]

        candidates = Candidates(self._document, _SEED, self._overlays)
        await candidates.correct(report.divergences, self._found.values(), ask)

    def _keep(self, key: Hashable, exchange: Exchange) -> None:
        """Keep the first exchange of its kind. Without room for all of them, nothing can be proved."""
        if key not in self._examples and self._room >= 0:
            self._room -= len(exchange.answer.body) + len(exchange.request.body) + _OVERHEAD
            self._examples[key] = exchange

    def _state(self, operation: str, group: str) -> str:
        is_fine = self._groups.get((operation, group))
        return "none" if is_fine is None else "ok" if is_fine else "diverges"


class Watching:
    """One per proxy. `say` is called with the line of each exchange."""

    def __init__(
        self, document: Document, target: str, say: Callable[[str], None], overlays: tuple[Path, ...] = ()
    ) -> None:
        self.observed = Observed(document, target, "proxy", overlays)
        self._showing, self._target, self._say = Showing(document, target), target, say
        self._began = self._latest = time()
        self._is_closing = False
        self.unjudged: Counter[str] = Counter()
        """How many exchanges were not judged, by reason."""
        self._waiting: SimpleQueue[Passed | None] = SimpleQueue()
        self._kept: deque[tuple[Passed, list[str]]] = deque()
        self._waiting_bytes = self._kept_bytes = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="judging", daemon=True)
        self._thread.start()

    def passed(self, passed: Passed) -> None:
        """Take an exchange, without waiting."""
        size = _size(passed)
        with self._lock:
            if self._waiting_bytes + size > MOST_WAITING:
                self.unjudged["more requests than could be judged"] += 1
                return
            self._waiting_bytes += size
        self._latest = time()
        self._waiting.put(passed)

    def report(self) -> Report:
        """Judge what still waits, and report."""
        self._is_closing = True
        self._waiting.put(None)
        self._thread.join()
        return self.observed.report(time() - self._began)

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
        while (passed := self._waiting.get()) is not None:
            while self._may_wait(passed):
                sleep(_QUIET)
            with self._lock:
                self._waiting_bytes -= _size(passed)
            self._judge(passed)

    def _may_wait(self, passed: Passed) -> bool:
        """Whether to judge an exchange later: judging slows down requests that pass meanwhile."""
        now, is_full = time(), self._waiting_bytes > MOST_WAITING // 2
        return now - self._latest < _QUIET and now - passed.at < _LONGEST_WAIT and not (is_full or self._is_closing)

    def _judge(self, passed: Passed) -> None:
        request, answer = passed.exchange
        unread, classes = passed.unread, list[str]()
        body = decoded(answer) if unread is None else None
        if body is not None:
            passed = passed._replace(exchange=Exchange(request, answer._replace(body=body)))
            classes = list(dict.fromkeys(finding.kind for finding in self.observed.judge(passed.exchange)))
        else:
            unread = unread or f"a body encoded as {answer.header('content-encoding')}"[:80]
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
        if encoding in ("br", "zstd"):
            found = _unpacked(encoding, body)
            if found is None:
                return None
            body = found
            continue
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


def _unpacked(encoding: str, body: bytes) -> bytes | None:
    """A body that a package decodes which may not be installed."""
    with suppress(Exception):  # each package has exceptions of its own
        if encoding == "br":
            found: bytes = import_module("brotli").decompress(body)
        else:
            found = import_module("zstandard").ZstdDecompressor().stream_reader(body).read(JUDGED + 1)
        return found if len(found) <= JUDGED else None
    return None


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
