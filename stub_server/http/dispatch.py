"""Dispatch: calls the handler, checks its response against the contract, and records change and reply in one step."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from time import perf_counter_ns
from typing import Any

import orjson
from connexion.middleware.abstract import ROUTING_CONTEXT, SpecMiddleware
from connexion.resolver import Resolver
from connexion.spec import Specification
from starlette.types import Receive, Scope, Send

from ..calls.call import CALL, Call
from ..calls.reply import Reply, Streamed
from ..contract.compatibility import success_of
from ..contract.document import JSON, Document, Operation
from ..contract.schema import ContractViolation, Schemas
from ..domain.uniqueness import taken
from ..engine.step import Saved
from ..kernel.clock import DAY
from ..kernel.problem import Conflict, NotBuilt
from ..store.tables import UniqueViolation
from .maps import check_names, kept_maps

_MEMBER = re.compile(r"[.\[]")

Handler = Callable[..., Reply | Awaitable[Reply]]


class OperationHandler:
    """One operation with its handler and its response schemas."""

    def __init__(self, operation: Operation, handler: Handler, document: Document, schemas: Schemas) -> None:
        self.operation, self.handler, self._schemas = operation, handler, schemas
        self.is_async = inspect.iscoroutinefunction(handler)
        self.success: int | None = None
        """The status of its successes, where an overlay has another one than the handler."""
        self.unsent: frozenset[bytes] = frozenset()
        """The headers of its successes that overlays have taken away."""
        self._maps = tuple(kept_maps(operation, document.resolve))
        self._proved: set[tuple[int, Any]] = set()

    @cached_property
    def _validators(self) -> dict[int, Any]:
        return {
            status: self._schemas.compile(response.media[JSON], request=False)
            for status, response in self.operation.responses.items()
            if JSON in response.media
        }

    def checked(self, call: Call, reply: Reply) -> Reply:
        """A response that the contract lists. Raises Conflict for what only its body's maps have wrong."""
        if call.has_odd_names:
            check_names(call.arguments.get("body"), self._maps)
        call.trace.respond_at = perf_counter_ns()
        if self.success is not None:
            reply.status = self.success
            if reply.status == 204:
                reply.parts = ()
        if self.unsent:
            reply.headers = tuple(header for header in reply.headers if header[0] not in self.unsent)
        if reply.shape is None or (reply.status, reply.shape) not in self._proved:
            self.check(reply)
        return reply

    def check(self, reply: Reply) -> None:
        """Check a response. Raises ContractViolation for a status, header or body that the contract does not have.

        Stored records were checked when they were written: a shape around them is checked when it first occurs. A
        body without a shape is checked every time.
        """
        response = self.operation.responses.get(reply.status)
        if response is None:
            raise ContractViolation(f"{self.operation.id} answered {reply.status}, which the contract does not list")
        if not reply.parts and not response.media:
            return
        if reply.media != b"application/json":
            if reply.media.decode().partition(";")[0] not in response.media:
                raise ContractViolation(
                    f"{self.operation.id} answered {reply.media.decode()}, which the contract does not list"
                )
            return
        for name, header in response.headers.items():
            if header.get("required") and name not in ("X-Request-Id",):
                key = name.lower().encode()
                if not any(k == key for k, _ in reply.headers):
                    raise ContractViolation(f"{self.operation.id} answered without {name}")
        body = orjson.loads(b"".join(reply.parts))
        validator = self._validators[reply.status]
        if not validator.is_valid(body):
            error = next(validator.iter_errors(body))
            raise ContractViolation(
                f"{self.operation.id} {reply.status} at {error.instance_path}: {error.message[:300]}"
            )
        if reply.shape is not None:
            self._proved.add((reply.status, reply.shape))


class Dispatch(SpecMiddleware):
    """The application of the stack. Handlers run on the event loop."""

    def __init__(
        self, documents: Mapping[str, Document], schemas: Mapping[str, Schemas], shipped: Document | None
    ) -> None:
        """`documents` and `schemas` by base path; `shipped` is the API's contract without overlays, if any."""
        self._documents, self._schemas, self._shipped = documents, schemas, shipped
        self._apis: dict[str, tuple[Specification, Resolver]] = {}
        self._bound: dict[str, dict[str, OperationHandler]] = {}

    def add_api(self, specification: Specification, base_path: str | None = None, **options: Any) -> None:
        """Take the operations of an API. Each is bound at its first request: a start has no time for all."""
        base = specification.base_path if base_path is None else base_path
        self._apis[base], self._bound[base] = (specification, options["resolver"]), {}

    def _bind(self, base: str, ident: str) -> OperationHandler:
        """Resolve the operation's handler with Connexion's resolver."""
        document = self._documents[base]
        specification, resolver = self._apis[base]
        operation = document.operations[ident]
        parsed = specification.operation_cls.from_spec(
            specification,
            path=operation.path,
            method=operation.method.lower(),
            resolver=resolver,
            uri_parser_class=None,
        )
        bound = self._bound[base][ident] = OperationHandler(operation, parsed.function, document, self._schemas[base])
        made_for = self._shipped.operations.get(ident) if self._shipped is not None and not base else None
        if made_for is not None:
            status = success_of(operation, made_for)
            bound.success = None if status in made_for.responses else status
            had, has = made_for.responses[made_for.successes[0]].headers, operation.responses[status].headers
            bound.unsent = frozenset(name.lower().encode() for name in had.keys() - has.keys())
        return bound

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope[CALL]
        routed = scope["extensions"][ROUTING_CONTEXT]
        base, ident = routed["api_base_path"], routed["operation_id"]
        bound = self._bound[base].get(ident) or self._bind(base, ident)
        call.trace.rule_at = perf_counter_ns()
        try:
            reply = bound.handler(call, *call.values, **call.arguments)
            if bound.is_async:
                reply = await reply  # type: ignore[misc]
            assert isinstance(reply, Reply)
            reply = bound.checked(call, reply)
            if isinstance(reply, Streamed):
                call.stream = reply
                return
            body, key = b"".join(reply.parts), call.reply_key
            # A refusal is not saved: it can be tried again.
            saved = None if key is None or reply.status >= 300 else (key[0], saved_reply(call, reply, body, key[1]))
            if saved is not None or call.drafted is not None:
                call.record(saved)
            set_answer(call, reply, body)
        except Conflict as conflict:
            _place(conflict, call.values, call.arguments.get("body"))
            raise
        except (ContractViolation, UniqueViolation) as error:
            # A control makes records only where it fills a sandbox.
            if isinstance(error, UniqueViolation) and error.key is not None and error.key.code is not None and not base:
                refusal = taken(error.schema, error.key, error.value)
                _place(refusal, call.values, call.arguments.get("body"))
                raise refusal from None
            if self._shipped is None:
                raise
            raise NotBuilt(f"The overlays take this request, but not what it leads to: {error}") from None


def set_answer(call: Call, reply: Reply, body: bytes) -> None:
    """Have a reply sent."""
    headers = [*reply.headers]
    if reply.status != 204:  # 204 has neither body nor headers about one
        headers += [(b"content-type", reply.media), (b"content-length", b"%d" % len(body))]
    call.answer = reply.status, headers, reply.parts, body


def saved_reply(call: Call, reply: Reply, body: bytes, print_: bytes) -> Saved:
    """A reply as it is kept for 24 hours of the sandbox clock."""
    return Saved(print_, call.now + DAY, reply.status, body, reply.headers)


def _place(conflict: Conflict, values: tuple[str, ...], body: Any) -> None:
    """Of what the request has not sent, such as a status, the record has it that the path names."""
    sent = body if isinstance(body, dict) else {}
    if values:
        conflict.details = tuple(
            told | {"in": "path"} if told["in"] == "body" and _MEMBER.split(told["field"])[0] not in sent else told
            for told in conflict.details
        )
