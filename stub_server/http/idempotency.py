"""Idempotency: a request that is repeated with its Idempotency-Key is executed once, and gets the saved answer."""

import hashlib
from time import perf_counter_ns
from typing import Any

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, Call
from ..calls.reply import Reply
from ..engine.step import ReplyKey, Saved
from ..kernel.problem import Conflict, detail
from .dispatch import saved_reply, set_answer
from .refusals import render

HEADER = b"idempotency-key"
REPLAYED = (b"idempotent-replayed", b"true")


class Idempotency:
    """Answers with what is saved, or hands the key on: Dispatch records change and reply in one step."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        header = call.headers.get(HEADER)
        if header is None or call.operation is None or not call.operation.takes_key:
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
            # Something was done before it waited, such as a delivery opened: the same request must not do it twice.
            status, _, body = render(error, call.trace)
            reply = Reply(status, (body,))
            call.forget_draft()
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
        raise _conflict("idempotency_in_progress", "The first request with this key is still running. Retry soon.")
    saved = call.sandbox.replies.get(key)
    if saved is None or saved.expires <= call.now:
        return None
    if saved.fingerprint != print_:
        message = "This key was used with another body, or by a caller with other rights. Use a new key."
        raise _conflict("idempotency_key_reused", message)
    return saved


def _conflict(code: str, message: str) -> Conflict:
    return Conflict(message, code=code, details=[detail("Idempotency-Key", code, message, "header")])
