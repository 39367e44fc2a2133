"""An operation with its handler, and what is compiled of it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import orjson
from connexion.operations import AbstractOperation

from ...contract.document import JSON, Document, Operation, Response
from ...contract.schema import ContractViolation, Schemas
from ..reply import Reply, value
from ..resolver import not_built


class Shipped(NamedTuple):
    """A contract without overlays, for which handlers are written."""

    document: Document
    schemas: Schemas


@dataclass(eq=False)
class Endpoint:
    """An operation as Connexion has `parsed` it.

    Its handler is found, and compiled, with its first request.
    """

    parsed: AbstractOperation
    base: str  # the path below which the operations of the document are: empty for the API
    document: Document
    schemas: Schemas  # of the document
    shipped: Shipped | None  # the API's contract without overlays, if there are any
    ignore_unknown: bool  # whether members that a body of the API must not have are dropped

    def __post_init__(self) -> None:
        self.operation = self.document.operations[self.parsed.operation_id]
        self.security = self.parsed.security
        self.proved: set[tuple[int, Any]] = set()
        """Statuses and shapes that the contract has, as handlers reply them."""

    @property
    def made_for(self) -> Operation | None:
        """The operation that the handler was written for, where overlays may have changed it."""
        if self.shipped is None or self.base:
            return None
        return self.shipped.document.operations.get(self.operation.id)

    @cached_property
    def handler(self) -> Callable[..., Any]:
        """The function of the operation, whose module is imported now."""
        return self.parsed.function() or not_built

    @cached_property
    def is_async(self) -> bool:
        """Whether the handler is awaited."""
        return inspect.iscoroutinefunction(self.handler)

    def reply(self, found: Any) -> Reply:
        """What a handler answers: a body alone, or nothing, has the status of its successes."""
        if isinstance(found, Reply):
            return found
        if found is None:
            return Reply(204, ())
        return value(found, (self.made_for or self.operation).successes[0])

    @cached_property
    def _success(self) -> int | None:
        """The status of its successes, if overlays have given it another than the handler's."""
        if self.made_for is None:
            return None
        status = self.operation.success_like(self.made_for)
        return None if status in self.made_for.responses else status

    @cached_property
    def _validators(self) -> dict[int, Any]:
        return {
            status: self.schemas.compile(response.media[JSON], request=False)
            for status, response in self.operation.responses.items()
            if JSON in response.media
        }

    def check(self, reply: Reply) -> None:
        """Raises ContractViolation for a status, header or body that the contract does not have.

        Stored records were checked when they were written; the shape around them is checked when it
        first occurs. A body without a shape, and what overlays describe, is checked every time.
        """
        if self._success is not None:  # overlays have given the operation another status
            reply.status = self._success
            if reply.status == 204:
                reply.parts = ()
        response = self.operation.responses.get(reply.status)
        ident, media = self.operation.id, reply.media.decode()
        if response is None:
            raise ContractViolation(
                f"{ident} answered {reply.status}, which the contract does not list"
            )
        if media == JSON and (reply.parts or response.media):
            _check_headers(ident, response, reply)
            self._check_body(reply)
        elif media != JSON and media.partition(";")[0] not in response.media:
            raise ContractViolation(f"{ident} answered {media}, which the contract does not list")

    def _check_body(self, reply: Reply) -> None:
        body = orjson.loads(b"".join(reply.parts))
        validator = self._validators[reply.status]
        if not validator.is_valid(body):
            raise ContractViolation(f"{self.operation.id} {reply.status}{validator.reason(body)}")
        if reply.shape is not None and self.shipped is None:
            self.proved.add((reply.status, reply.shape))


def _check_headers(ident: str, response: Response, reply: Reply) -> None:
    """Raises ContractViolation where a required header is missing."""
    sent = {name for name, _ in reply.headers} | {b"x-request-id"}
    for name, header in response.headers.items():
        if header.get("required") and name.lower().encode() not in sent:
            raise ContractViolation(f"{ident} answered without {name}")
