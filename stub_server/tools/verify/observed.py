"""The report of traffic that others sent, recorded or through a proxy. Each exchange is compared
with the contract.

What a proxy has passed on is judged in a thread of its own: a line for each exchange, and the
newest ones are kept.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import Queue
from time import time

import httpx2
import orjson

from ...settings import Overlays
from .conformity import Conformity
from .correcting import correct
from .exchange import Answer, Exchange
from .findings import Finding, Report, contract_of
from .har import archive_of, entry_of
from .merging import Ledger
from .proxy import JUDGED, OWN, Passed
from .showing import Showing

MOST = 5_000  # findings
KEPT, MOST_BYTES = 1_000, 32 * 1024 * 1024
"""Exchanges of a proxy that are kept, and bytes of their bodies."""
MOST_WAITING, MOST_WAITING_BYTES = 1_000, 256 * 1024 * 1024
"""Exchanges that wait to be judged, and bytes of their bodies."""


class Observed(Ledger):
    """One per report. It shows no values of records: they belong to the sender of the traffic."""

    def __init__(self, target: str, mode: str, overlays: Overlays) -> None:
        """`mode` is `har` or `proxy`. Raises ContractError."""
        super().__init__(overlays)
        self.requests = 0
        self._target, self._mode = target, mode
        showing = Showing(self.document, target, values=False)
        self._conformity = Conformity(self.document, showing)
        self._examples: dict[Hashable, Exchange] = {}

    def judge(self, exchange: Exchange) -> list[Finding]:
        """In what an exchange departs. Requests that are no operation are not counted."""
        operation = self._conformity.operation_of(exchange.request.method, exchange.request.path)
        status = exchange.answer.status
        group = "rejects" if 400 <= status < 500 else "accepts"
        findings = self._conformity.findings(exchange, operation, group)
        if len(self.findings) < MOST:
            self.findings += findings
            for each in findings:
                self._examples.setdefault((each.kind, each.pointer, each.cause), exchange)
        if operation is not None:
            self.requests += 1
            self.answered(operation.id, status, group)
            self._examples.setdefault((operation.id, status), exchange)
        return findings

    def report(self, seconds: float) -> Report:
        """The report of what was seen until now.

        Its coverage is the share of all documented statuses.
        """
        operations, divergences = self.document.operations, self.divergences()
        seen = [name for name in operations if name in self.groups]
        return Report(
            target=self._target,
            contract=contract_of(self.document),
            mode=self._mode,
            seconds=seconds,
            requests=self.requests,
            exit=1 if divergences else 0 if self.requests else 3,
            coverage=self.coverage(self.documented(operations)),
            rows=self.rows(seen, divergences, "none"),
            divergences=divergences,
        )

    async def correct(self, report: Report) -> None:
        """Set the actions of the divergences that an overlay closes.

        Each is proved: one exchange of each finding and status is compared with the corrected
        contract.
        """

        async def again(file: Path) -> Collection[Finding]:
            judging = Observed(self._target, self._mode, (*self.overlays, file))
            for exchange in self._examples.values():
                judging.judge(exchange)
            return judging.findings

        await correct(report.divergences, self, again)


class Watching:
    """One per proxy. `say` is called with the line of each exchange."""

    def __init__(self, target: str, say: Callable[[str], None], overlays: Overlays = ()) -> None:
        self.observed = Observed(target, "proxy", overlays)
        self._showing = Showing(self.observed.document, target)
        self._target, self._say = target, say
        self._began = time()
        self.unjudged: Counter[str] = Counter()
        """How many exchanges were not judged, by reason."""
        self._waiting: Queue[Passed | None] = Queue()
        self._kept: deque[tuple[Passed, list[str]]] = deque(maxlen=KEPT)
        self._thread = threading.Thread(target=self._run, name="judging", daemon=True)
        self._thread.start()

    def passed(self, passed: Passed) -> None:
        """Take an exchange, without waiting."""
        waiting = sum(map(_size, [*self._waiting.queue]))
        if len(self._waiting.queue) >= MOST_WAITING or waiting > MOST_WAITING_BYTES:
            self.unjudged["more requests than could be judged"] += 1
        else:
            self._waiting.put(passed)

    def report(self) -> Report:
        """Judge what still waits, and report."""
        self._waiting.put(None)
        self._thread.join()
        return self.observed.report(time() - self._began)

    async def own(self, path: str) -> tuple[int, bytes]:
        """Answer a request for what was seen, newest last: an archive, whose entries also have the
        classes of divergences.
        """
        if path != f"{OWN}exchanges":
            message = f"Ask for {OWN}exchanges, which is an HTTP archive."
            return 404, orjson.dumps({"error": True, "message": message})
        entries = []
        for passed, classes in [*self._kept]:
            shown = entry_of(self._showing.redacted(passed.exchange), passed.at, self._target)
            entries.append(shown | {"_classes": classes, "_notJudged": passed.unread})
        return 200, archive_of(entries)

    def _run(self) -> None:
        while (passed := self._waiting.get()) is not None:
            self._judge(passed)

    def _judge(self, passed: Passed) -> None:
        request, answer = passed.exchange
        unread, classes = passed.unread, list[str]()
        body = None if unread else decoded(answer)
        if body is not None:
            passed = passed._replace(exchange=Exchange(request, answer._replace(body=body)))
            found = self.observed.judge(passed.exchange)
            classes = [*dict.fromkeys(each.kind for each in found)]
        else:
            unread = unread or f"a body encoded as {answer.header('content-encoding')}"[:80]
            self.unjudged[unread] += 1
        self._kept.append((passed._replace(unread=unread), classes))
        while sum(_size(each) for each, _ in self._kept) > MOST_BYTES:
            self._kept.popleft()
        word = f"not judged: {unread}" if unread else ", ".join(classes) or "ok"
        shown = self._showing.line(request)
        with suppress(OSError):  # nobody reads the lines any more
            self._say(f"{request.method:<6} {shown}  {answer.status or '---'}  {word}")


def decoded(answer: Answer) -> bytes | None:
    """The decoded body of an answer; None where its encoding cannot be read here, or it is larger
    than what is judged.
    """
    named = ",".join(answer.headers_named("content-encoding")).lower()
    if not {each.strip() for each in named.split(",")} <= _codings():
        return None
    sent = httpx2.ByteStream(answer.body)
    body = bytearray()
    try:
        for piece in httpx2.Response(
            200, headers={"Content-Encoding": named}, stream=sent
        ).iter_bytes():
            body += piece
            if len(body) > JUDGED:
                return None
    except httpx2.DecodingError:
        return None
    return bytes(body)


@cache
def _codings() -> set[str]:
    """The content codings that can be read: those that the HTTP client asks for, by the packages
    that are installed.
    """
    with httpx2.Client() as client:
        return {"", "identity", *client.headers["accept-encoding"].replace(" ", "").split(",")}


def _size(passed: Passed) -> int:
    request, answer = passed.exchange
    return len(request.body) + len(answer.body)
