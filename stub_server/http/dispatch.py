"""What ends the way of a request: Idempotency and Dispatch.

Idempotency executes a request that is repeated with its Idempotency-Key once, and answers with the saved reply.
Dispatch calls the handler, checks its response against the contract, and records change and saved reply in one step.
An Endpoint is an operation with its handler and what is compiled of it.
"""

import hashlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter_ns
from typing import Any

import orjson
from connexion.operations import AbstractOperation
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, Call
from ..calls.reply import Reply, Streamed
from ..contract.document import JSON, Document, Operation
from ..contract.schema import ContractViolation, Schemas
from ..domain.lifecycle import duplicate
from ..engine.step import ReplyKey, Saved
from ..kernel.clock import DAY
from ..kernel.problem import Conflict, NotBuilt
from ..resolver import not_built
from ..store.tables import UniqueViolation
from .answers import render
from .validation import OperationRequests

HEADER = b"idempotency-key"
REPLAYED = (b"idempotent-replayed", b"true")
_MEMBER = re.compile(r"[.\[]")


class Idempotency:
    """Answers with the saved reply, or passes the key on to Dispatch, which saves one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        header = call.headers.get(HEADER)
        if header is None or not call.endpoint.operation.takes_key:
            return self.app(scope, receive, send)
        return self._once(_key_of(call, header), scope, receive, send)

    async def _once(self, key: ReplyKey, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope[CALL]
        print_ = _fingerprint(call, call.arguments.get("body"))
        earlier = _earlier(call, key, print_)
        if earlier is not None:
            call.trace.respond_at = perf_counter_ns()
            reply = Reply(earlier.status, (earlier.body,), None, (*earlier.headers, REPLAYED))
            set_answer(call, reply, earlier.body)
            return
        call.reply_key = key, print_
        in_progress = call.sandbox.in_progress
        in_progress.add(key)
        try:
            await self.app(scope, receive, send)
        except Exception as error:
            if not call.has_recorded:
                raise
            # A step was recorded before the handler waited, such as a delivery opened: it must not be done twice.
            status, _, body = render(error, call.trace)
            reply = Reply(status, (body,))
            call.drafted = None
            call.record((key, saved_reply(call, reply, body, print_)))
            set_answer(call, reply, body)
        finally:
            in_progress.discard(key)


def _key_of(call: Call, header: bytes) -> ReplyKey:
    """Merchant, method, path and key of a request; a quoted key and a bare one are the same."""
    text = header.decode("latin-1")
    if len(text) > 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return call.store.merchant.id, call.method, call.trace.path, text


def _fingerprint(call: Call, body: object) -> bytes:
    """A hash that is equal for equal JSON bodies and queries of callers with equal rights.

    Rights count because a saved reply may hold a secret, which a caller with fewer rights must not get.
    """
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS) if body is not None else b""
    caller = call.caller
    rights = caller and [sorted(caller.scopes), None if caller.projects is None else sorted(caller.projects)]
    return hashlib.sha256(b"\x00".join((canonical, call.query_string, orjson.dumps(rights)))).digest()


def _earlier(call: Call, key: ReplyKey, print_: bytes) -> Saved | None:
    """The saved reply of an earlier request, or None for the first one. Raises Conflict."""
    if key in call.sandbox.in_progress:
        message = "The first request with this key is still running. Retry soon."
        raise Conflict.at("Idempotency-Key", message, "idempotency_in_progress", where="header")
    saved = call.sandbox.replies.get(key)
    if saved is None or saved.expires <= call.now:
        return None
    if saved.fingerprint != print_:
        message = "This key was used with another body, or by a caller with other rights. Use a new key."
        raise Conflict.at("Idempotency-Key", message, "idempotency_key_reused", where="header")
    return saved


@dataclass(eq=False)
class Endpoint:
    """An operation as Connexion has `parsed` it. Its handler is found, and compiled, with its first request."""

    parsed: AbstractOperation
    base: str  # the path below which the operations of the document are: empty for the API
    document: Document
    schemas: Schemas  # of the document
    shipped: Document | None  # the API's contract without overlays, if any
    ignore_unknown: bool  # whether members that a body of the API must not have are dropped

    def __post_init__(self) -> None:
        self.operation, self.security = self.document.operations[self.parsed.operation_id], self.parsed.security
        self._proved: set[tuple[int, Any]] = set()

    @property
    def made_for(self) -> Operation | None:
        """The operation that the handler was written for, where overlays may have changed it."""
        return None if self.shipped is None or self.base else self.shipped.operations.get(self.operation.id)

    @cached_property
    def handler(self) -> Callable[..., Any]:
        """The function of the operation, whose module is imported now."""
        return self.parsed.function() or not_built

    @cached_property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.handler)

    @cached_property
    def requests(self) -> OperationRequests:
        return OperationRequests(self)

    @cached_property
    def _success(self) -> int | None:
        """The status of its successes, if overlays have given it another than the handler's."""
        if self.made_for is None:
            return None
        status = self.operation.success_like(self.made_for)
        return None if status in self.made_for.responses else status

    @cached_property
    def _keeps_figures(self) -> bool:
        """Whether no overlay bounds the pages of lists, which differ from answer to answer, in a new way."""
        if self.shipped is None or self.made_for is None:
            return True
        new, old = (contract.raw["components"]["schemas"] for contract in (self.document, self.shipped))
        if new.get("Pagination") != old.get("Pagination"):
            return False
        return self.operation.parameters == self.made_for.parameters

    @cached_property
    def _validators(self) -> dict[int, Any]:
        return {
            status: self.schemas.compile(response.media[JSON], request=False)
            for status, response in self.operation.responses.items()
            if JSON in response.media
        }

    def checked(self, call: Call, reply: Reply) -> Reply:
        call.trace.respond_at = perf_counter_ns()
        if self._success is not None:
            reply.status = self._success
            if reply.status == 204:
                reply.parts = ()
        if reply.shape is None or (reply.status, reply.shape) not in self._proved:
            self._check(reply)
        return reply

    def _check(self, reply: Reply) -> None:
        """Raises ContractViolation for a status, header or body that the contract does not have.

        Stored records were checked when they were written; the shape around them is checked when it first occurs, and
        a body without a shape every time.
        """
        response = self.operation.responses.get(reply.status)
        ident, media = self.operation.id, reply.media.decode()
        if response is None:
            raise ContractViolation(f"{ident} answered {reply.status}, which the contract does not list")
        if not reply.parts and not response.media:
            return
        if media != JSON:
            if media.partition(";")[0] not in response.media:
                raise ContractViolation(f"{ident} answered {media}, which the contract does not list")
            return
        sent = {name for name, _ in reply.headers} | {b"x-request-id"}
        for name, header in response.headers.items():
            if header.get("required") and name.lower().encode() not in sent:
                raise ContractViolation(f"{ident} answered without {name}")
        body = orjson.loads(b"".join(reply.parts))
        validator = self._validators[reply.status]
        if not validator.is_valid(body):
            raise ContractViolation(f"{ident} {reply.status}{validator.reason(body)}")
        if reply.shape is not None and self._keeps_figures:
            self._proved.add((reply.status, reply.shape))


class Dispatch:
    """The application of the stack. Handlers run on the event loop."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope[CALL]
        endpoint: Endpoint = call.endpoint
        call.trace.rule_at = perf_counter_ns()
        try:
            reply = endpoint.handler(call, *call.values, **call.arguments)
            if endpoint.is_async:
                reply = await reply
            assert isinstance(reply, Reply)
            reply = endpoint.checked(call, reply)
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
            _locate(conflict, call)
            raise
        except (ContractViolation, UniqueViolation) as error:
            is_api = not endpoint.base  # a control creates records only where it fills a sandbox
            if isinstance(error, UniqueViolation) and error.key is not None and error.key.code is not None and is_api:
                refusal = duplicate(error.schema, error.key, error.value)
                _locate(refusal, call)
                raise refusal from None
            if endpoint.shipped is None:
                raise
            raise NotBuilt(f"The overlays allow this request, but not its result: {error}") from None


def set_answer(call: Call, reply: Reply, body: bytes) -> None:
    headers = [*reply.headers]
    if reply.status != 204:  # 204 has neither body nor headers about one
        headers += [(b"content-type", reply.media), (b"content-length", b"%d" % len(body))]
    call.answer = reply.status, headers, reply.parts, body


def saved_reply(call: Call, reply: Reply, body: bytes, print_: bytes) -> Saved:
    """A reply as it is saved for 24 hours of the sandbox's clock."""
    return Saved(print_, call.now + DAY, reply.status, body, reply.headers)


def _locate(conflict: Conflict, call: Call) -> None:
    """Details about what the request did not send, such as a status, are about the record that the path names."""
    body = call.arguments.get("body")
    sent = body if isinstance(body, dict) else {}
    if call.values:
        conflict.details = tuple(
            each | {"in": "path"} if each["in"] == "body" and _MEMBER.split(each["field"])[0] not in sent else each
            for each in conflict.details
        )
