"""Renders every exception as a response of one shape. No other module does."""

import logging
from http import HTTPStatus

import orjson
from starlette.exceptions import HTTPException

from ..engine.journal import Trace
from ..engine.sandbox import DEFAULT
from ..kernel.problem import Refusal

log = logging.getLogger("stub_server")

Headers = list[tuple[bytes, bytes]]
JSON = (b"content-type", b"application/json")


def as_refusal(error: Exception, trace: Trace) -> Refusal:
    """Any exception as a refusal. One that is neither a Refusal nor an HTTP error is logged as a defect."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException) and error.status_code < 500:
        status = HTTPStatus(error.status_code)
        refusal = Refusal(error.detail or status.phrase, code=status.name.lower(), headers=error.headers)
        refusal.status = error.status_code
        return refusal
    log.error("defect in %s %r (%s)", trace.method, trace.path, trace.id, exc_info=error)
    return Refusal(
        "The sandbox failed by a defect of its own. Its log has the request id; the request may work after a reset."
    )


def render(error: Exception, trace: Trace, sandbox: str | None = None) -> tuple[int, Headers, bytes]:
    """Status, headers and body of a refusal. `sandbox` is what the request was for, if not what its trace is of."""
    refusal = as_refusal(error, trace)
    trace.code = refusal.code
    body = _envelope(refusal, trace, sandbox or trace.sandbox)
    headers: Headers = [JSON, (b"content-length", b"%d" % len(body))]
    headers.extend((name.lower().encode(), text.encode("latin-1", "replace")) for name, text in refusal.headers.items())
    return refusal.status, headers, body


def _envelope(refusal: Refusal, trace: Trace, sandbox: str) -> bytes:
    prefix = "" if sandbox == DEFAULT else f"/s/{sandbox}"
    return orjson.dumps(
        {
            "error": True,
            "message": refusal.shown(prefix),
            "code": refusal.code,
            "status": refusal.status,
            "request_id": trace.id,
            "details": refusal.details,
        }
    )
