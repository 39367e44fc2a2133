"""The application behind Connexion's middleware: reads the request, calls the handler, checks the response."""

import inspect
import re
from collections.abc import Awaitable, Callable
from functools import cached_property
from time import perf_counter_ns
from typing import Any

import orjson
from connexion.middleware.abstract import ROUTING_CONTEXT, SpecMiddleware
from connexion.resolver import Resolver
from connexion.spec import Specification
from starlette.types import Receive, Scope, Send

from ..calls.call import Call
from ..calls.reply import Reply, Streamed
from ..contract.document import JSON, Document, Operation
from ..contract.known import success_of
from ..contract.schema import Schemas
from ..contract.violation import ContractViolation
from ..domain.documents import checks_digits
from ..engine.step import ReplyKey
from ..kernel.problem import Conflict, NotBuilt
from . import idempotency
from .bodies import Uploads, read_body
from .errors import render, warning_headers
from .fitting import takes_of
from .requests import Requests
from .router import CALL
from .streaming import send_stream

# Said for the API only: overlays do not apply to the control contract.
_OVERLAYS = " An overlay (--overlay) adds one; --unknown-fields ignore drops it."
_MEMBER = re.compile(r"[.\[]")

Handler = Callable[..., Reply | Awaitable[Reply]]


class Bound:
    """One operation with its handler, its request validation and its response schemas."""

    def __init__(
        self, operation: Operation, handler: Handler, requests: Requests, schemas: Schemas, success: int | None = None
    ) -> None:
        """`success` is the status of its successes where an overlay has another one than the handler."""
        self._success = success
        self.operation, self.handler, self.requests, self._schemas = operation, handler, requests, schemas
        self.takes_key = any(p.name.lower() == idempotency.HEADER for p in operation.parameters)
        self.is_async = inspect.iscoroutinefunction(handler)
        self._proved: set[tuple[int, Any]] = set()

    @cached_property
    def _validators(self) -> dict[int, Any]:
        return {
            status: self._schemas.compile(response.media[JSON], request=False)
            for status, response in self.operation.responses.items()
            if JSON in response.media
        }

    async def answer(self, call: Call, values: tuple[str, ...], arguments: dict[str, Any]) -> Reply:
        """Call an async handler, and check its response against the contract."""
        call.trace.rule_at = perf_counter_ns()
        try:
            reply: Reply = await self.handler(call, *values, **arguments)  # type: ignore[misc]
        except Conflict as conflict:
            _place(conflict, values, arguments.get("body"))
            raise
        return self._checked(call, arguments, reply)

    def answer_at_once(self, call: Call, values: tuple[str, ...], arguments: dict[str, Any]) -> Reply:
        """Call a sync handler, and check its response against the contract before its draft is recorded."""
        call.trace.rule_at = perf_counter_ns()
        try:
            reply: Reply = self.handler(call, *values, **arguments)  # type: ignore[assignment]
        except Conflict as conflict:
            _place(conflict, values, arguments.get("body"))
            raise
        return self._checked(call, arguments, reply)

    def _checked(self, call: Call, arguments: dict[str, Any], reply: Reply) -> Reply:
        if call.has_odd_names:
            self.requests.check_names(arguments.get("body"))
        call.trace.respond_at = perf_counter_ns()
        if self._success is not None:
            reply.status = self._success
            if reply.status == 204:
                reply.parts = ()
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
            if reply.media.decode() not in response.media:
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


def _place(conflict: Conflict, values: tuple[str, ...], body: Any) -> None:
    """Of what the request has not sent, such as a status, the record has it that the path names."""
    sent = body if isinstance(body, dict) else {}
    if values:
        conflict.details = tuple(
            told | {"in": "path"} if told["in"] == "body" and _MEMBER.split(told["field"])[0] not in sent else told
            for told in conflict.details
        )


class Terminal(SpecMiddleware):
    """Binds operations of all contracts to their handlers and serves them, inline on the event loop."""

    def __init__(
        self,
        documents: dict[str, Document],
        schemas: dict[str, Schemas],
        shipped: Document | None,
        *,
        ignore_unknown: bool,
    ) -> None:
        """`documents` and `schemas` by base path; `shipped` is the API's contract without overlays, if any."""
        self._documents, self._schemas, self._ignore_unknown = documents, schemas, ignore_unknown
        self._shipped = shipped
        self._uploads = Uploads()
        self._apis: dict[str, tuple[Specification, Resolver]] = {}
        self._bound: dict[str, dict[str, Bound]] = {}

    def add_api(self, specification: Specification, base_path: str | None = None, **options: Any) -> None:
        """Take the operations of an API. Each is bound at its first request: a start has no time for all."""
        base = specification.base_path if base_path is None else base_path
        self._apis[base], self._bound[base] = (specification, options["resolver"]), {}

    def _bind(self, base: str, ident: str) -> Bound:
        """Resolve the operation's handler with Connexion's resolver, and describe its requests and responses."""
        document, schemas = self._documents[base], self._schemas[base]
        specification, resolver = self._apis[base]
        operation = document.operations[ident]
        parsed = specification.operation_cls.from_spec(
            specification,
            path=operation.path,
            method=operation.method.lower(),
            resolver=resolver,
            uri_parser_class=None,
        )
        takes = takes_of(parsed.function)
        requests = Requests(
            operation,
            document,
            schemas,
            takes,
            ignore_unknown=self._ignore_unknown,
            may_reject_query=not base,
            further="" if base else _OVERLAYS,
        )
        made_for = self._shipped.operations.get(ident) if self._shipped is not None and not base else None
        success = None
        if self._shipped is not None and made_for is not None:
            requests.rely_on(Requests(made_for, self._shipped, schemas, takes, ignore_unknown=False))
            told = success_of(operation, made_for)
            success = None if told in made_for.responses else told
        bound = self._bound[base][ident] = Bound(operation, parsed.function, requests, schemas, success)
        return bound

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            call: Call = scope[CALL]
            routed = scope["extensions"][ROUTING_CONTEXT]
            base, ident = routed["api_base_path"], routed["operation_id"]
            bound = self._bound[base].get(ident) or self._bind(base, ident)
            requests, trace = bound.requests, call.trace
            trace.validate_at = perf_counter_ns()
            if checks_digits.get() is not call.sandbox.settings.check_digits:
                checks_digits.set(call.sandbox.settings.check_digits)
            if requests.has_body:
                call.body_bytes = await read_body(receive, call.headers.get(b"content-length"))
            elif bound.operation.upload is not None:
                values, arguments = requests.read(call)
                async with self._uploads.taken(call, receive, bound.operation.upload):
                    await call.accept(None)
                    reply = await bound.answer(call, values, arguments)
                _answer(call, reply, b"".join(reply.parts))
                return
            values, arguments = requests.read(call)
            if call.body_faults or call.first_use or call.go_back:
                await call.accept(arguments.get("body"))
            key = idempotency.key_of(call) if bound.takes_key else None
            if key is not None:
                await _once(call, bound, key, values, arguments)
                return
            if bound.is_async:
                reply = await bound.answer(call, values, arguments)
                if isinstance(reply, Streamed):
                    await send_stream(reply, warning_headers(call), scope, receive, send)
                    return
            else:
                reply = bound.answer_at_once(call, values, arguments)
            call.record()
            _answer(call, reply, b"".join(reply.parts))
        except ContractViolation as error:
            if self._shipped is None:
                raise
            raise NotBuilt(f"The overlays take this request, but not what it leads to: {error}") from None


async def _once(call: Call, bound: Bound, key: ReplyKey, values: tuple[str, ...], arguments: dict[str, Any]) -> None:
    """Serve a request with an Idempotency-Key: the first one is executed, a later one gets its saved response."""
    print_ = idempotency.fingerprint(call, arguments.get("body"))
    earlier = idempotency.earlier(call, key, print_)
    if earlier is not None:
        call.trace.respond_at = perf_counter_ns()
        reply = Reply(earlier.status, (earlier.body,), None, (*earlier.headers, idempotency.REPLAYED))
        _answer(call, reply, earlier.body)
        return
    in_progress = call.sandbox.in_progress
    in_progress.add(key)
    try:
        if bound.is_async:
            reply = await bound.answer(call, values, arguments)
        else:
            reply = bound.answer_at_once(call, values, arguments)
        body = b"".join(reply.parts)
        saved = idempotency.saved(call, reply, body, print_)
        call.record(None if saved is None else (key, saved))
    except Exception as error:
        if not call.has_recorded:
            raise
        # Something was done before it waited, such as a delivery opened: the same request again must not do it twice.
        status, _, body = render(error, call.trace)
        reply = Reply(status, (body,))
        call.forget_draft()
        call.record((key, idempotency.kept(call, reply, body, print_)))
    finally:
        in_progress.discard(key)
    _answer(call, reply, body)


def _answer(call: Call, reply: Reply, body: bytes) -> None:
    """Leave the answer to the edge, which sends it."""
    headers = [*reply.headers]
    if reply.status != 204:  # 204 has neither body nor headers about one
        headers += [(b"content-type", reply.media), (b"content-length", b"%d" % len(body))]
    if call.warnings:
        headers += warning_headers(call)
    call.answer = reply.status, headers, reply.parts, body
