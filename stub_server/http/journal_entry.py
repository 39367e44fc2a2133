"""Keeps a request and its answer in the journal, by reference and without secrets."""

from __future__ import annotations

from ..calls.call import Call
from ..contract.redaction import LEFT_OUT
from ..contract.secrets import Secrets
from .connection import sent_lines
from .hosts import inbox_at
from .security import recognised

OVERHEAD, EACH = 1_000, 80  # bytes of a request besides what came and went, and of an id
_READING = ("GET", "HEAD", "OPTIONS")


def changes_something(call: Call) -> bool:
    """Whether a request to the control surface may change something. What is posted to an inbox is in the inbox."""
    return call.method not in _READING and inbox_at(call.method, call.path) is None


class JournalWriter:
    """One per server."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._carriers: frozenset[str] | None = None  # operations with secrets, found out with the first request

    def pass_by(self, call: Call) -> None:
        """Leave secrets out of what the log tells of a request that is not kept."""
        trace = call.trace
        if call.warnings:
            trace.warnings = call.warnings
        if self._secrets.suspects(trace.path, trace.query, b""):
            self._redact_line(call)

    def write(self, call: Call) -> None:
        """Keep a request that has ended."""
        trace, journal = call.trace, call.sandbox.journal
        if call.warnings:
            trace.warnings = call.warnings
        if call.prefix:
            trace.is_prefixed = True
        if not journal.keeps_bodies:
            self.pass_by(call)
            trace.answer, trace.sent = None, b""
            trace.size = OVERHEAD + 4 * len(trace.path) + len(trace.query)
            journal.append(trace)
            return
        head, body, query = call.head, call.body_bytes, trace.query
        if trace.status == 401 or trace.code == "jwt_required":
            authorization = head.by_name.get(b"authorization")
            if authorization is not None:
                trace.caller = recognised(call, authorization)
        if self._carriers is None:
            self._carriers = self._secrets.operations
        packed = head.packed
        if head.is_suspect or trace.operation in self._carriers or self._secrets.suspects(trace.path, query, body):
            self._redact_line(call)
            query, lines = trace.query, packed.split(b"\n")
            half = len(lines) // 2
            packed = b"\n".join((*lines[:half], *map(self._secrets.line, lines[half:])))
            trace.sent = sent_lines([(name, self._secrets.line(value)) for name, value in call.sent_headers])
            kept, trace.answer = self._secrets.without(body, trace.answer)
            body = kept or b""
        elif not trace.sent:
            trace.sent = sent_lines(call.sent_headers)
        trace.packed = packed
        size = OVERHEAD + 4 * len(trace.path) + len(query) + len(packed) + trace.length
        if body:
            media = head.by_name.get(b"content-type")
            if media is not None and b"=" in media and self._secrets.suspects_encoded(media, body):
                body = LEFT_OUT
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
