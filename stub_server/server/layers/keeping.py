"""Writes requests that have ended to the journals of their sandboxes, without secrets."""

from functools import lru_cache

from ...contract.secrets import LEFT_OUT, REDACTED, SECRET_HEADERS, Secrets
from ...engine.journal import Trace, head_of
from ..request import COMMAND, CONTROL, Request
from ..server import Server
from ..target import Target
from .answers import Answer
from .hosts import MOST_HEADERS, inbox_at

_WITHHELD = {name.encode(): REDACTED.encode() for name in SECRET_HEADERS}
OVERHEAD, EACH = 1_000, 80  # bytes of a request besides its messages, and of an id
_COMMAND = COMMAND.encode()
_CACHED = 64  # of the newest requests, that are remembered
_READING = ("GET", "HEAD", "OPTIONS")


def _changes_nothing(request: Request, target: Target) -> bool:
    """Whether a request to the control surface only reads, or is a message to an inbox, which has it."""
    return request.method in _READING or inbox_at(request.method, target.path) is not None


def _size_of(trace: Trace, answer: Answer | None) -> int:
    """The bytes of a trace, roughly."""
    size = OVERHEAD + 4 * len(trace.path)
    if trace.parts is not None and answer is not None:
        size += len(trace.received_head) + len(answer.body)
        if trace.simulated is not None:  # with headers of a rule, which clients choose
            size += len(head_of(answer.headers))
    if trace.body is not None:
        size += len(trace.body)
    if trace.after is not None:
        size += EACH * (len(trace.events) + len(trace.deliveries))
    return size


class Keeping:
    """Of the control surface, what may change something is kept; an inbox itself stores what it receives."""

    def __init__(self, server: Server) -> None:
        self._secrets = Secrets(server.document, server.control, own=(server.admin_key, server.settings.secret))
        self._head_of = lru_cache(maxsize=_CACHED)(self._read_head)

    def keep(self, request: Request, target: Target, trace: Trace, answer: Answer | None) -> None:
        """Take the secrets out of a trace, and write it to the journal; it has the answer's parts already."""
        if target.path.startswith(CONTROL):
            trace.is_control = True
        has_secrets = self._line_has_secrets(trace)
        if has_secrets:
            self._redact_line(trace)
        if not trace.is_kept or (trace.is_control and _changes_nothing(request, target)):
            return
        trace.by_command = request.headers.get(b"user-agent") == _COMMAND
        if target.prefix:
            trace.is_prefixed = True
        if target.sandbox.journal.keeps_bodies:
            has_secrets = self._take_messages(request, trace, answer) or has_secrets
            if has_secrets or trace.operation in self._secrets.operations:
                self._redact_messages(trace)
        else:
            trace.body = trace.parts = None
        trace.size = _size_of(trace, answer)
        target.sandbox.journal.append(trace)

    def _line_has_secrets(self, trace: Trace) -> bool:
        """Whether the request line or a warning may have secrets.

        The path alone of an operation that succeeded names records, and nothing else.
        """
        is_plain = trace.operation is not None and not trace.query and not trace.warnings
        if is_plain and 200 <= trace.status < 300 and not trace.is_control:
            return False
        return self._secrets.suspects_line("\n".join((trace.path, *trace.warnings)), trace.query)

    def _take_messages(self, request: Request, trace: Trace, answer: Answer | None) -> bool:
        """Keep headers and body of a request, and headers of its answer; whether they may have secrets."""
        has_secrets = False
        if answer is not None:
            trace.received_head, has_secrets = self._head_of(tuple(request.sent))
            trace.sent = answer.headers
        if trace.body is None:
            return has_secrets
        return self._check_body(request, trace, trace.body) or has_secrets

    def _read_head(self, sent: tuple[tuple[bytes, bytes], ...]) -> tuple[bytes, bool]:
        """What is kept of the headers of a request, and whether they may have secrets.

        Clients send the same ones again and again: thousands of requests share one text.
        """
        head = head_of([(name, _WITHHELD.get(name, value)) for name, value in sent[:MOST_HEADERS]])
        return head, self._secrets.suspects_line(head.decode("latin-1"), b"")

    def _check_body(self, request: Request, trace: Trace, body: bytes) -> bool:
        """Whether a body may have secrets. One that cannot be searched is left out."""
        is_suspect = self._secrets.suspects(body)
        if self._secrets.suspects_encoded(request.headers.get(b"content-type", b""), body):
            body = LEFT_OUT
        trace.body = body or None
        return is_suspect

    def _redact_messages(self, trace: Trace) -> None:
        """Remove secrets from headers and bodies."""
        line = self._secrets.line
        if trace.received_head:
            trace.received_head = b"\n".join(map(line, trace.received_head.split(b"\n")))
        trace.sent = [(line(name), line(value)) for name, value in trace.sent]
        trace.body, trace.answer = self._secrets.without(trace.body, trace.answer)

    def _redact_line(self, trace: Trace) -> None:
        """Remove secrets from the request line, and from warnings."""
        secrets = self._secrets
        trace.path = secrets.line(trace.path.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        trace.query = secrets.query(trace.query.decode("latin-1")).encode("latin-1")
        trace.warnings = [secrets.text(warning) for warning in trace.warnings]
