"""The report of traffic that others sent, recorded or through a proxy. Each exchange is compared
with the contract.

What a proxy has passed on is judged in a thread of its own: a line for each exchange, and the
newest ones are kept.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import time

import httpx2
import orjson

from ...settings import Overlays
from .correcting import correct
from .exchange import Answer, Exchange
from .findings import Finding, Report, cut
from .har import archive_of, entry_of
from .merging import Ledger
from .proxy import JUDGED

MOST = 5_000  # findings
KEPT, MOST_BYTES = 1_000, 32 * 1024 * 1024
"""Exchanges of a proxy that are kept, and their bytes."""
MOST_WAITING, MOST_WAITING_BYTES = 1_000, 256 * 1024 * 1024
"""Exchanges that wait to be judged, and bytes of their bodies."""


class Observed(Ledger):
    """One per report. It shows no values of records: they belong to the sender of the traffic."""

    def __init__(self, overlays: Overlays, address: str, mode: str) -> None:
        """`mode` is `har` or `proxy`. Raises ContractError."""
        super().__init__(overlays, address, mode)
        self.requests = 0
        self.unjudged: Counter[str] = Counter()
        """How many exchanges were not judged, by reason."""
        self._examples: dict[Hashable, Exchange] = {}

    def judge(self, exchange: Exchange) -> list[Finding]:
        """In what an exchange departs. Requests that are no operation are not counted."""
        request, status = exchange.request, exchange.answer.status
        operation = self.document.routed(request.path)[0].get(request.method)
        group = "rejects" if 400 <= status < 500 else "accepts"
        findings = []
        for each in self.conformity.findings(exchange, operation):
            findings.append(self.showing.finding(each, exchange, operation, group))
        places = [(each.kind, each.pointer) for each in findings]
        if len(self.findings) < MOST:
            self.findings += findings
            self._examples.setdefault((operation and operation.id, status, *places), exchange)
        if operation is not None:
            self.requests += 1
            self.answered(operation.id, status, group)
        return findings

    def report(self, seconds: float, known: Collection[str] = ()) -> Report:
        """The report of what was seen until now, without divergences of known fingerprints."""
        report = self.ended(
            self.divergences(),
            known,
            among=self.document.operations,
            beyond=0,
            unseen="none",
            seconds=seconds,
            requests=self.requests,
        )
        rows = report.rows.items()
        report.rows = {name: row for name, row in rows if name in self.groups}
        unjudged = [f"{count:,} ({reason})" for reason, count in sorted(self.unjudged.items())]
        if not self.findings and not self.requests:
            report.exit = 3
            unjudged = unjudged or ["no request of the contract"]
            report.notes.append(f"Nothing was judged: {', '.join(unjudged)}.")
        elif unjudged:
            report.notes.append(f"Not judged: {', '.join(unjudged)}.")
        if report.divergences:
            report.exit = 1
        return report

    async def correct(self, report: Report) -> None:
        """Set the actions of the divergences that an overlay closes.

        Each is proved: one exchange of each finding and status is compared with the corrected
        contract.
        """

        async def again(file: Path) -> Collection[Finding]:
            judging = Observed((*self.overlays, file), self.address, self._mode)
            for exchange in self._examples.values():
                judging.judge(exchange)
            return judging.findings

        await correct(report.divergences, self, again)


class Watching:
    """One per proxy. `say` is called with the line of each exchange."""

    def __init__(self, target: str, say: Callable[[str], None], overlays: Overlays = ()) -> None:
        self.observed = Observed(overlays, target, "proxy")
        self._say, self._began = say, time()
        self._waiting: deque[int] = deque()  # bytes of each exchange
        self._kept: deque[bytes] = deque(maxlen=KEPT)  # entries of an archive
        self._judging = ThreadPoolExecutor(1, "judging")

    def passed(self, exchange: Exchange) -> None:
        """Take an exchange, without waiting."""
        waiting = [*self._waiting]
        if len(waiting) >= MOST_WAITING or sum(waiting) > MOST_WAITING_BYTES:
            self.observed.unjudged["more requests than could be judged"] += 1
            return
        self._waiting.append(len(exchange.request.body) + len(exchange.answer.body))
        self._judging.submit(self._judge, exchange)

    def report(self) -> Report:
        """Judge what still waits, and report."""
        self._judging.shutdown()
        return self.observed.report(time() - self._began)

    def archive(self) -> bytes:
        """What was seen, newest last: an archive, whose entries also have the classes of
        divergences.
        """
        return archive_of(map(orjson.Fragment, [*self._kept]))

    def _judge(self, exchange: Exchange) -> None:
        """Judge the exchange that has waited longest."""
        self._waiting.popleft()
        request, answer = exchange
        body, classes, unread = decoded(answer), list[str](), ""
        if max(len(request.body), len(answer.body)) > JUDGED:
            unread = f"a body of more than {JUDGED // 1024**2} MB"
        elif body is None:
            unread = f"a body encoded as {answer.header('content-encoding')}"[:80]
        if unread:
            self.observed.unjudged[unread] += 1
        else:
            answer = answer._replace(body=body or b"")
            found = self.observed.judge(Exchange(request, answer))
            classes = [*dict.fromkeys(each.kind for each in found)]
        shown = self.observed.showing.redacted(Exchange(request, answer))
        noted = {"_classes": classes, "_notJudged": unread or None}
        self._kept.append(orjson.dumps(entry_of(shown, self.observed.address) | noted))
        while sum(map(len, self._kept)) > MOST_BYTES:
            self._kept.popleft()
        method, path, query, *_ = shown.request
        line = cut(f"{path}?{query}".removesuffix("?"))
        word = f"not judged: {unread}" if unread else ", ".join(classes) or "ok"
        with suppress(OSError):  # nobody reads the lines any more
            self._say(f"{method:<6} {line}  {answer.status or '---'}  {word}")


def decoded(answer: Answer) -> bytes | None:
    """The decoded body of an answer; None where its encoding cannot be read with the packages that
    are installed, or it is larger than what is judged.

    A coding within another may take hours for no byte at all.
    """
    named = ",".join(answer.headers_named("content-encoding")).lower()
    if "," in named:
        return None
    headers, sent = {"Content-Encoding": named}, httpx2.ByteStream(answer.body)
    body = bytearray()
    try:
        for piece in httpx2.Response(200, headers=headers, stream=sent).iter_bytes():
            body += piece
            if len(body) > JUDGED:
                return None
    except httpx2.DecodingError:
        return None
    is_unread = named not in ("", "identity") and body and body == answer.body
    return None if is_unread else bytes(body)
