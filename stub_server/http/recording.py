"""Ends a request's trace: takes what came and went, by reference and without secrets, into the journal."""

from __future__ import annotations

from itertools import chain

from ..calls.call import Call
from ..contract.document import Document
from ..contract.redaction import REDACTED
from ..contract.secrets import SECRET_HEADERS, Secrets
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

    def __init__(self, *contracts: Document, admin_key: bytes | None = None) -> None:
        """`admin_key` is the server's."""
        self._secrets = Secrets(*contracts, admin_key=admin_key)
        self._carriers: frozenset[str] | None = None  # operations with secrets, found out with the first request

    def pass_by(self, call: Call) -> None:
        """Leave secrets out of what the log tells of a request that is not kept."""
        trace = call.trace
        if call.warnings:
            trace.warnings = call.warnings
        if self._secrets.suspects(trace.path, trace.query, b"", b""):
            self._redact_line(call)

    def record(self, call: Call, sent: Headers) -> None:
        """Keep a request that has ended; `sent` are its headers as they came, where a name may stand twice."""
        trace, journal = call.trace, call.sandbox.journal
        if call.warnings:
            trace.warnings = call.warnings
        if call.prefix:
            trace.is_prefixed = True
        if not journal.keeps_bodies:
            self.pass_by(call)
            trace.answer = None
            trace.size = OVERHEAD + 4 * len(trace.path) + len(trace.query)
            journal.append(trace)
            return
        headers, body, query = call.headers, call.body_bytes, trace.query
        if b"authorization" in headers:
            if trace.status == 401 or trace.code == "jwt_required":
                trace.caller = recognised(call, headers[b"authorization"])
            headers[b"authorization"] = _REDACTED
        if not _SECRET.isdisjoint(headers):
            headers |= dict.fromkeys(_SECRET.intersection(headers), _REDACTED)
        if len(headers) != len(sent):
            headers = _joined(sent, headers)
        if self._carriers is None:
            self._carriers = self._secrets.operations
        packed, sent_headers = b"\n".join((*headers, *headers.values())), call.sent_headers
        if trace.operation in self._carriers or self._secrets.suspects(trace.path, query, packed, body):
            self._redact_line(call)
            query = trace.query
            packed = b"\n".join((*headers, *(self._secrets.line(value) for value in headers.values())))
            sent_headers = [(name, self._secrets.line(value)) for name, value in sent_headers]
            kept, trace.answer = self._secrets.without(body, trace.answer)
            body = kept or b""
        # Bytes, and no pairs: these would be a dozen objects for each of thousands of requests.
        trace.packed, trace.sent = packed, b"\n".join(chain.from_iterable(sent_headers))
        size = OVERHEAD + 4 * len(trace.path) + len(query) + len(packed) + trace.length
        if body:
            trace.body = body
            size += len(body)
        if call.has_recorded:
            size += EACH * (len(trace.events) + len(trace.deliveries))
        if trace.simulated is not None:  # with headers of a rule, which clients choose
            size += len(trace.sent)
        trace.size = size
        journal.append(trace)

    def _redact_line(self, call: Call) -> None:
        """Leave secrets out of what came in the first line of a request, and of what repeats it."""
        trace, secrets = call.trace, self._secrets
        trace.path = secrets.line(trace.path.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        trace.query = secrets.query(trace.query.decode("latin-1")).encode("latin-1")
        if call.warnings:
            trace.warnings = [secrets.text(warning) for warning in call.warnings]


def _joined(sent: Headers, redacted: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Headers of which some stand twice: their values together, those that were redacted left so."""
    found: dict[bytes, bytes] = {}
    for name, value in sent:
        if redacted[name] == _REDACTED:
            found[name] = _REDACTED
        else:
            found[name] = found[name] + b", " + value if name in found else value
    return found
