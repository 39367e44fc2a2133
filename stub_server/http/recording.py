"""Ends a request's trace: takes what came and went, by reference and without secrets, into the journal."""

from __future__ import annotations

from ..calls.call import Call
from ..contract.document import Document
from ..contract.secrets import REDACTED, SECRET_HEADERS, Secrets, plain
from ..kernel.trace import Trace
from .auth import recognised
from .errors import Headers
from .inbox import inbox_at

OVERHEAD, EACH = 1_000, 80  # bytes of a request besides what came and went, and of an id
_REDACTED = REDACTED.encode()
_SECRET = frozenset(name.encode() for name in SECRET_HEADERS if name != "authorization")
_READING = ("GET", "HEAD", "OPTIONS")


def changes_something(call: Call) -> bool:
    """Whether a request to the control surface may change something. What is posted to an inbox is in the inbox."""
    return call.method not in _READING and inbox_at(call.method, call.path) is None


class Recorder:
    """One per server."""

    def __init__(self, *contracts: Document) -> None:
        self._contracts, self._secrets = contracts, Secrets(*contracts)
        self._plain: frozenset[str] = frozenset()  # operations without secrets, found out with the first request

    def record(self, call: Call, sent: Headers) -> None:
        """Keep a request that has ended; `sent` are its headers as they came, where a name may stand twice."""
        trace, journal = call.trace, call.sandbox.journal
        if call.warnings:
            trace.warnings = call.warnings
        if call.prefix:
            trace.is_prefixed = True
        if not journal.keeps_bodies:
            trace.answer, trace.sent_headers = None, ()
            trace.size = OVERHEAD + 4 * len(trace.path) + len(trace.query)
            journal.append(trace)
            return
        headers, body, query = call.headers, call.body_bytes, trace.query
        if b"authorization" in headers:
            if trace.status == 401:
                trace.caller = recognised(call, headers[b"authorization"])
            headers[b"authorization"] = _REDACTED
        if not _SECRET.isdisjoint(headers):
            headers |= dict.fromkeys(_SECRET.intersection(headers), _REDACTED)
        if len(headers) != len(sent):
            headers = _joined(sent, headers)
        if trace.operation not in self._plain or (body and b"_key" in body) or (query and b"_key=" in query):
            body, trace.answer = self._redact(trace, headers, body, trace.answer)
        trace.packed = packed = b"\n".join((*headers, *headers.values()))
        size = OVERHEAD + 4 * len(trace.path) + len(query) + len(packed) + trace.length
        if body:
            trace.body = body
            size += len(body)
        if call.has_recorded:
            size += EACH * (len(trace.events) + len(trace.deliveries))
        if trace.simulated is not None:  # with headers of a rule, which clients choose
            size += sum([len(name) + len(value) for name, value in trace.sent_headers])
        trace.size = size
        journal.append(trace)

    def _redact(
        self, trace: Trace, headers: dict[bytes, bytes], body: bytes, answer: bytes | None
    ) -> tuple[bytes, bytes | None]:
        """Leave secrets out of a request that may hold some, or of which it is not known what it was for."""
        if not self._plain:
            self._plain = frozenset(i for each in self._contracts for i in each.operations) - self._secrets.operations
        if trace.operation in self._plain and b"_key" not in body and b"_key=" not in trace.query:
            return body, answer
        trace.path = plain(trace.path.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        trace.query = plain(trace.query)
        for name, value in headers.items():
            headers[name] = plain(value)
        kept, answered = self._secrets.without(body, answer)
        return kept or b"", answered


def _joined(sent: Headers, redacted: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Headers of which some stand twice: their values together, those that were redacted left so."""
    found: dict[bytes, bytes] = {}
    for name, value in sent:
        if redacted[name] == _REDACTED:
            found[name] = _REDACTED
        else:
            found[name] = found[name] + b", " + value if name in found else value
    return found
