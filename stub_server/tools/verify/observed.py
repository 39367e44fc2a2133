"""The report of traffic that others sent, recorded or through a proxy. Each exchange is compared
with the contract.

What a proxy has passed on is judged in a thread of its own: a line for each exchange, and the
newest ones are kept.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import httpx2
import orjson

from ...contract.document import Operation
from ...settings import Overlays
from .correcting import correct
from .exchange import Exchange
from .findings import Finding, cut
from .forms import rendered
from .har import archive_of, entry_of
from .merging import Report
from .proxy import JUDGED

MOST = 5_000  # findings
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of exchanges that a proxy keeps; an overlay may be proved by as many more."""
MOST_WAITING = 256 * 1024 * 1024
"""Bytes of exchanges that wait to be judged."""
_AROUND = 64 * 1024
"""Bytes that an exchange may take besides its bodies."""
_PIECE = 64 * 1024
"""Bytes that are decoded at once: some decoders copy the rest of them after each frame."""


class Observed(Report):
    """One per report. It shows no values of records: they belong to the sender of the traffic."""

    def __init__(self, overlays: Overlays, address: str, mode: str) -> None:
        """`mode` is `har` or `proxy`. Raises ContractError."""
        super().__init__(overlays, address, mode)
        self._began = monotonic()
        self.unjudged: Counter[str] = Counter()
        """How many exchanges were not judged, by reason."""
        self._examples: dict[Hashable, Exchange] = {}
        self._free = MOST_BYTES  # for more of them
        self._unproved: list[Finding] = []  # those of which no example is kept

    def judge(self, exchange: Exchange | str) -> list[Finding]:
        """In what an exchange departs; a text is the reason why there is none to be judged.

        Requests that are no operation are not counted.
        """
        if isinstance(exchange, str):
            self.unjudged[exchange] += 1
            return []
        request, status = exchange.request, exchange.answer.status
        operation = self.document.routed(request.path)[0].get(request.method)
        group = "rejects" if 400 <= status < 500 else "accepts"
        findings = []
        for each in self.conformity.findings(exchange, operation):
            findings.append(self.showing.finding(each, exchange, operation, group))
        if len(self.findings) < MOST:
            self.findings += findings
            self._keep(exchange, findings, operation)
        if operation is not None:
            self.requests += 1
            self.answered(operation.id, status, group)
        return findings

    def _keep(
        self, exchange: Exchange, findings: list[Finding], operation: Operation | None
    ) -> None:
        """Keep an example of findings, as long as there is room."""
        places = [(each.kind, each.pointer) for each in findings]
        key = (operation and operation.id, exchange.answer.status, *places)
        if key in self._examples:
            return
        size = len(repr(exchange))
        if size > self._free:
            self._unproved += findings
            return
        self._free -= size
        self._examples[key] = exchange

    def finish(self, known: Collection[str] = ()) -> Report:
        """The report of what was seen until now, without divergences of known fingerprints."""
        self.divergences = self.merge()
        self.end(self.document.operations, known)
        rows = {name: row for name, row in self.coverage.rows.items() if name in self.groups}
        self.coverage = self.coverage._replace(rows=rows)
        self.seconds = monotonic() - self._began
        self.notes = (*rendered("unjudged.txt", observed=self).splitlines(),)
        if self.divergences:
            self.exit = 1
        elif not self.findings and not self.requests:
            self.exit = 3
        return self

    async def correct(self) -> None:
        """Set the actions of the divergences that an overlay closes.

        Each is proved: one exchange of each finding and status is compared with the corrected
        contract.
        """

        async def again(file: Path, names: Collection[str]) -> Collection[Finding]:
            judging = Observed((*self.overlays, file), self.address, self.mode)
            for exchange in self._examples.values():
                judging.judge(exchange)
            return [*judging.findings, *self._unproved]

        await correct(self, again)


class Watching(Observed):
    """One per proxy. `say` is called with the line of each exchange, after all else: that nobody
    reads the lines any more ends nothing.
    """

    def __init__(self, target: str, say: Callable[[str], None], overlays: Overlays = ()) -> None:
        super().__init__(overlays, target, "proxy")
        self._say = say
        self._waiting: deque[int] = deque()  # bytes of each exchange
        self._kept: deque[bytes] = deque()  # entries of an archive
        self._judging = ThreadPoolExecutor(1, "judging")

    def passed(self, exchange: Exchange) -> None:
        """Take an exchange, without waiting."""
        if sum([*self._waiting]) > MOST_WAITING:
            self.judge("more requests than could be judged")
            return
        self._waiting.append(_AROUND + len(exchange.request.body) + len(exchange.answer.body))
        self._judging.submit(self._judge, exchange)

    def finish(self, known: Collection[str] = ()) -> Report:
        """Judge what still waits, and report."""
        self._judging.shutdown()
        return super().finish(known)

    def archive(self) -> bytes:
        """What was seen, newest last: an archive, whose entries also have the classes of
        divergences.
        """
        return archive_of(map(orjson.Fragment, [*self._kept]))

    def _judge(self, exchange: Exchange) -> None:
        """Judge the exchange that has waited longest."""
        self._waiting.popleft()
        read = readable(exchange)
        classes = [*dict.fromkeys(each.kind for each in self.judge(read))]
        word, unread = ", ".join(classes) or "ok", None
        if isinstance(read, str):
            word, unread, read = f"not judged: {read}", read, exchange
        shown = self.showing.redacted(read)
        noted = {"_classes": classes, "_notJudged": unread}
        self._kept.append(orjson.dumps(entry_of(shown, self.address) | noted))
        while sum(map(len, self._kept)) > MOST_BYTES:
            self._kept.popleft()
        method, path, query, *_ = shown.request
        line = cut(f"{path}?{query}".removesuffix("?"))
        self._say(f"{method:<6} {line}  {shown.answer.status or '---'}  {word}")


def readable(exchange: Exchange) -> Exchange | str:
    """An exchange with the body of its answer decoded, or the reason why it is not judged: the
    encoding cannot be read with the packages that are installed, or a body is too large.

    A coding within another may take hours for no byte at all.
    """
    request, answer = exchange
    named = (answer.header("content-encoding") or "").lower()
    large = f"a body of more than {JUDGED // 1024**2} MB"
    unknown = f"a body encoded as {named}"[:80]
    if max(len(request.body), len(answer.body)) > JUDGED:
        return large
    if "," in named:
        return unknown
    starts, body = range(0, len(answer.body), _PIECE), b""
    sent = (answer.body[start : start + _PIECE] for start in starts)
    try:
        for piece in httpx2.Response(
            200, headers={"Content-Encoding": named}, content=sent
        ).iter_bytes():
            body += piece
            if len(body) > JUDGED:
                return large
    except httpx2.DecodingError:
        return unknown
    if named not in ("", "identity") and body and body == answer.body:
        return unknown
    return Exchange(request, answer._replace(body=body))
