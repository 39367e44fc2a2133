"""The exceptions that refuse a request. Nothing else refuses one; `http/answers.py` renders them.

Refusal
├── Malformed        400  cannot be parsed
├── Unauthenticated  401  credential missing or invalid
├── Forbidden        403  scope, address or project is not allowed
├── Missing          404  the target in the path does not exist
├── NotAllowed       405  the path does not have this method
├── Conflict         409  duplicate value, wrong state, or contradiction to a stored value
├── TimedOut         408  the request did not arrive in time
├── TooLarge         413  the body is too large
├── TargetTooLong    414  the request's target is too long
├── Unsupported      415  the body is not JSON
├── Invalid          422  against the contract's schema
├── Limited          429  too many requests
├── HeadTooLarge     431  the headers are too large
├── NotBuilt         501  in the contract without a handler, or a method or transfer coding that is not known
├── Busy             503  all connections are in use
├── Unavailable      503  this sandbox is broken and must be reset, or the store cannot be written
└── NotThisVersion   505  another version than HTTP/1.1 and 1.0
"""

import re
from collections.abc import Mapping, Sequence

Detail = dict[str, str]
_A_PATH = re.compile(r"(?<![^ (])/")


class Refusal(Exception):
    """A refusal: `message` for people, `code` for programs, one of `details` for each violation.

    `advice` is added to the message: what to ask next, with plain paths such as `POST /_sandbox/reset`, which are shown
    as those of the sandbox that the request was for.
    """

    status = 500
    code = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        advice: str = "",
        code: str | None = None,
        details: Sequence[Detail] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{message} {advice}" if advice else message)
        self.message, self.advice = message, advice
        self.code = code or self.code
        self.details = tuple(details)
        self.headers = dict(headers or {})

    def told(self, prefix: str) -> str:
        """The message with its advice; `prefix` is put before each path of it."""
        return f"{self.message} {_A_PATH.sub(prefix + '/', self.advice)}" if self.advice else self.message


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


class TargetTooLong(Refusal):
    """414."""

    status = 414
    code = "uri_too_long"


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


class NotThisVersion(Refusal):
    """505."""

    status = 505
    code = "http_version_not_supported"


class Busy(Refusal):
    """503."""

    status = 503
    code = "too_many_connections"


class Unavailable(Refusal):
    """503."""

    status = 503
    code = "sandbox_unavailable"


def broken(name: str) -> Unavailable:
    """503 for a world that a defect has left unusable."""
    message = f"A defect has left the sandbox {name} half changed; the server's log names it."
    return Unavailable(message, advice="POST /_sandbox/reset seeds it anew.")


def gone() -> Unavailable:
    """503 where the sandbox of a request was reset, deleted, or left to another server meanwhile."""
    message = "The sandbox is another one by now, or gone, and this request has changed nothing. Send it again."
    return Unavailable(message, headers={"Retry-After": "0"})


def detail(field: str, code: str, message: str, where: str = "body") -> Detail:
    """One violation: the field and the part of the request it is in, a code, and what to do."""
    return {"field": field, "in": where, "code": code, "message": message}


def reference_missing(field: str, what: str) -> Conflict:
    """409 for an id in the body that no record has: 404 is the target in the path."""
    message = f"No {what} of this merchant has this {field}."
    return Conflict(message, code="reference_not_found", details=[detail(field, "reference_not_found", message)])
