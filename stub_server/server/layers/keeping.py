"""Writes requests that have ended to the journals of their sandboxes, without secrets."""

from functools import lru_cache

from ...contract.redaction import Redactor, is_in_other_charset
from ...contract.secrets import LEFT_OUT, REDACTED, SECRET_HEADERS
from ...engine.trace import Trace, head_of
from ..request import COMMAND, CONTROL, Request
from ..server import Server
from ..target import Target
from .answers import Answer
from .hosts import MOST_HEADERS, inbox_at

_WITHHELD = {name.encode(): REDACTED.encode() for name in SECRET_HEADERS}
OVERHEAD, EACH = 700, 80  # bytes of a request besides its messages, and of an id
_COMMAND = COMMAND.encode()
_CACHED = 64  # of the newest requests, that are remembered
_READING = ("GET", "HEAD", "OPTIONS")


def _changes_nothing(request: Request, target: Target) -> bool:
    """Whether a request to the control surface only reads, or is a message to an inbox,
    which has it.
    """
    return request.method in _READING or inbox_at(request.method, target.path) is not None


class Keeping:
    """Of the control surface, what may change something is kept; an inbox itself stores
    what it receives.
    """

    def __init__(self, server: Server) -> None:
        self._redactor = Redactor(
            server.document, server.control, own=(server.admin_key, server.settings.secret)
        )
        self._head_of = lru_cache(maxsize=_CACHED)(self._read_head)

    def keep(self, request: Request, target: Target, trace: Trace, answer: Answer | None) -> None:
        """Take the secrets out of a trace, and write it to the journal; it has the
        answer's parts already.
        """
        is_control = trace.is_control = target.path.startswith(CONTROL)
        has_secrets = False
        # The path alone of an operation of the API that succeeded names records, and nothing else.
        is_plain = trace.operation is not None and 200 <= trace.status < 300 and not is_control
        if not is_plain or trace.query or trace.warnings:
            has_secrets = self._redact_line(trace)
        if not trace.is_kept or (is_control and _changes_nothing(request, target)):
            return
        trace.by_command = request.headers.get(b"user-agent") == _COMMAND
        trace.is_prefixed = target.prefix != ""
        size = OVERHEAD + 4 * len(trace.path) + EACH * (len(trace.events) + len(trace.deliveries))
        if not target.sandbox.journal.keeps_bodies:
            trace.body = trace.parts = None
        else:
            if trace.body is not None:
                has_secrets = self._take_body(request, trace) or has_secrets
                size += len(trace.body or b"")
            if answer is not None:
                trace.received_head, head_has_secrets = self._head_of(tuple(request.sent))
                trace.sent_head = head_of(answer.headers)
                has_secrets = has_secrets or head_has_secrets
                size += len(trace.received_head) + len(trace.sent_head) + len(answer.body)
            if has_secrets or trace.operation in self._redactor.operations:
                self._redact_messages(trace)
        trace.size = size
        target.sandbox.journal.append(trace)

    def _take_body(self, request: Request, trace: Trace) -> bool:
        """Keep the body of a request where it can be searched; returns whether it may have
        secrets.
        """
        body = trace.body or b""
        trace.body = body or None
        if body and is_in_other_charset(request.headers.get(b"content-type", b"")):
            trace.body = LEFT_OUT
        return self._redactor.suspects(body)

    def _read_head(self, sent: tuple[tuple[bytes, bytes], ...]) -> tuple[bytes, bool]:
        """What is kept of the headers of a request, and whether they may have secrets.

        Clients send the same ones again and again: thousands of requests share one text.
        """
        head = head_of([(name, _WITHHELD.get(name, value)) for name, value in sent[:MOST_HEADERS]])
        return head, self._redactor.suspects_line(head.decode("latin-1"))

    def _redact_messages(self, trace: Trace) -> None:
        """Remove secrets from headers and bodies."""
        line = self._redactor.line
        trace.received_head = b"\n".join(map(line, trace.received_head.split(b"\n")))
        trace.sent_head = b"\n".join(map(line, trace.sent_head.split(b"\n")))
        trace.body, trace.answer = self._redactor.messages(trace.body, trace.answer)

    def _redact_line(self, trace: Trace) -> bool:
        """Remove secrets from the request line, and from warnings; returns whether there may be
        some.
        """
        redactor = self._redactor
        line = "\n".join((trace.path, *trace.warnings))
        is_suspect = redactor.suspects_line(line)
        if trace.query:
            is_suspect = is_suspect or redactor.suspects(trace.query)
        if not is_suspect:
            return False
        trace.path = redactor.line(trace.path.encode("utf-8", "surrogatepass")).decode(
            "utf-8", "surrogatepass"
        )
        trace.query = redactor.query(trace.query.decode("latin-1")).encode("latin-1")
        trace.warnings = [redactor.text(warning) for warning in trace.warnings]
        return True
