"""The exceptions that refuse a request, and the one for what a user has given.

`server/reply.py` renders the refusals.
"""

import re
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Self

Detail = dict[str, str]
_A_PATH = re.compile(r"(?<![^ (])/")


class Refusal(Exception):
    """A refusal: `message` for people, `code` for programs, one of `details` for each violation.

    `advice` is added to the message: what to call next, with plain paths such as `POST
    /_sandbox/reset`. They are shown with the prefix of the request's sandbox. Subclasses are for
    statuses that several rooms refuse with, or catch.
    """

    status = 500
    code = "internal_error"

    def __init_subclass__(cls, status: int | None = None, code: str | None = None) -> None:
        cls.status = status or cls.status
        cls.code = code or cls.code

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        advice: str = "",
        code: str | None = None,
        details: Sequence[Detail] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{message} {advice}".rstrip())
        self.message = message
        self.advice = advice
        self.status = status or self.status
        self.code = code or self.code
        self.details = tuple(details)
        self.headers = dict(headers or {})

    @classmethod
    def at(
        cls,
        field: str,
        message: str,
        code: str | None = None,
        *,
        where: str = "body",
        violation: str = "not_allowed",
        advice: str = "",
    ) -> Self:
        """A refusal of one field.

        Without a `code` it has that of its class, and the `violation`.
        """
        return cls(
            message,
            advice=advice,
            code=code,
            details=[detail(field, code or violation, message, where)],
        )

    def again(self) -> Self:
        """The same refusal for another request: the traceback of one that is raised would hold all
        of them.
        """
        return copy(self)

    def shown(self, prefix: str) -> str:
        """The message with its advice; `prefix` is put before each path of it."""
        return f"{self.message} {_A_PATH.sub(prefix + '/', self.advice)}".rstrip()


class BadRequest(Refusal, status=400, code="malformed_request"):
    """Cannot be parsed."""


class Unauthenticated(Refusal, status=401, code="invalid_token"):
    """Credential missing or invalid."""


class Forbidden(Refusal, status=403, code="insufficient_scope"):
    """Scope, address or project is not allowed."""


class NotFound(Refusal, status=404, code="not_found"):
    """The target in the path does not exist."""


class Conflict(Refusal, status=409, code="invalid_state_transition"):
    """Duplicate value, wrong state, or contradiction to a stored value."""


class Unsupported(Refusal, status=415, code="unsupported_media_type"):
    """The body is not JSON."""


class Invalid(Refusal, status=422, code="validation_error"):
    """Against the contract's schema."""


class Limited(Refusal, status=429, code="rate_limited"):
    """Too many requests."""


class NotBuilt(Refusal, status=501, code="not_implemented"):
    """In the contract without a handler, or a method or transfer coding that is not known."""


class Unavailable(Refusal, status=503, code="sandbox_unavailable"):
    """This sandbox is broken and must be reset, or the store cannot be written."""


class UnusableInput(Exception):
    """A contract, scenario, store, file or setting cannot be used.

    The message says where and why.
    """


def broken(name: str) -> Unavailable:
    """503 for a sandbox that a defect has left unusable."""
    return Unavailable(
        f"A defect has left the sandbox {name} half changed; the server's log names the defect.",
        advice="POST /_sandbox/reset seeds it again.",
    )


def gone() -> Unavailable:
    """503 where the sandbox of a request was reset, deleted, or left to another
    server meanwhile.
    """
    return Unavailable(
        "The sandbox was replaced or deleted meanwhile, and this request has changed nothing. Send"
        " it again.",
        headers={"Retry-After": "0"},
    )


def store_unavailable(message: str, advice: str = "") -> Unavailable:
    """503 because of the store."""
    return Unavailable(
        message, advice=advice, code="store_unavailable", headers={"Retry-After": "5"}
    )


def unwritten(reason: str) -> Unavailable:
    """503 because the store cannot be written."""
    return store_unavailable(
        f"The store cannot be written ({reason}). Until it can, changes are refused and reads are"
        " answered."
    )


def undone() -> Unavailable:
    """503 for a change that was undone, because the store could not be written."""
    return store_unavailable(
        "The store could not be written for a moment. Unless a read shows this change, send it"
        " again."
    )


def detail(field: str, code: str, message: str, where: str = "body") -> Detail:
    """One violation: the field and the part of the request it is in, a code, and what to do."""
    return {"field": field, "in": where, "code": code, "message": message}


def reference_not_found(field: str, what: str) -> Conflict:
    """409 for an id in the body that no record has: 404 is the target in the path."""
    return Conflict.at(
        field, f"No {what} of this merchant has this {field}.", "reference_not_found"
    )
