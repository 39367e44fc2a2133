"""Every way to refuse a request. Raising one of these is the only way; the HTTP floor renders them.

Refusal
├── Malformed        400  what cannot be parsed
├── Unauthenticated  401  who are you
├── Forbidden        403  not you, not from here, not this project
├── Missing          404  the target, or what the body refers to, is not there
├── NotAllowed       405  this path has no such method
├── Conflict         409  uniqueness, state, or what contradicts a stored value
├── TimedOut         408  the request took too long to come
├── TooLarge         413  more than the server reads
├── Unsupported      415  not JSON
├── Invalid          422  what the contract's schema refuses
├── Limited          429  too many
├── HeadTooLarge     431  more headers than the server reads
├── NotBuilt         501  in the contract, with no handler behind it
├── Busy             503  no connection is free
└── Unavailable      503  this sandbox is broken and must be reset
"""

from collections.abc import Mapping, Sequence

Detail = dict[str, str]


class Refusal(Exception):
    """A refusal: `message` for a human, `code` for a program, `details` for each violation."""

    status = 500
    code = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Sequence[Detail] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.details = tuple(details)
        self.headers = dict(headers or {})


class Malformed(Refusal):
    """400."""

    status = 400
    code = "malformed_json"


class Unauthenticated(Refusal):
    """401."""

    status = 401
    code = "invalid_token"


class Forbidden(Refusal):
    """403."""

    status = 403
    code = "insufficient_scope"


class Missing(Refusal):
    """404."""

    status = 404
    code = "not_found"


class NotAllowed(Refusal):
    """405."""

    status = 405
    code = "method_not_allowed"


class Conflict(Refusal):
    """409."""

    status = 409
    code = "invalid_state_transition"


class TimedOut(Refusal):
    """408."""

    status = 408
    code = "request_timeout"


class TooLarge(Refusal):
    """413."""

    status = 413
    code = "payload_too_large"


class Unsupported(Refusal):
    """415."""

    status = 415
    code = "unsupported_media_type"


class Invalid(Refusal):
    """422."""

    status = 422
    code = "validation_error"


class Limited(Refusal):
    """429."""

    status = 429
    code = "rate_limited"


class HeadTooLarge(Refusal):
    """431."""

    status = 431
    code = "headers_too_large"


class NotBuilt(Refusal):
    """501."""

    status = 501
    code = "not_implemented"


class Busy(Refusal):
    """503."""

    status = 503
    code = "too_many_connections"


class Unavailable(Refusal):
    """503."""

    status = 503
    code = "sandbox_unavailable"


def detail(field: str, code: str, message: str, where: str = "body") -> Detail:
    """One violation: where it is, what kind it is, and what to do."""
    return {"field": field, "in": where, "code": code, "message": message}


def reference_missing(field: str, what: str) -> Missing:
    """404 of an id in a body that names nothing."""
    message = f"No {what} of this merchant has this {field}."
    return Missing(message, code="reference_not_found", details=[detail(field, "reference_not_found", message)])


def duplicate(field: str, code: str, message: str) -> Conflict:
    """409 of a value that another record already has."""
    return Conflict(message, code=code, details=[detail(field, code, message)])
