"""Idempotency-Key, where the contract has one: a repeated request is executed once, and gets the saved response."""

import hashlib

import orjson

from ..calls.call import Call
from ..calls.reply import Reply
from ..engine.step import ReplyKey, Saved
from ..kernel.clock import DAY
from ..kernel.problem import Conflict, detail

HEADER = "idempotency-key"
REPLAYED = (b"idempotent-replayed", b"true")


def key_of(call: Call) -> ReplyKey | None:
    """Merchant, method, path and key of a request that carries one; a quoted key and a bare one are the same."""
    header = call.headers.get(HEADER.encode())
    if header is None:
        return None
    text = header.decode("latin-1")
    if len(text) > 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return call.store.merchant.id, call.trace.method, call.trace.path, text


def fingerprint(call: Call, body: object) -> bytes:
    """A hash that is equal for equal JSON bodies and queries of callers with equal rights.

    Rights count because a saved reply may hold a secret, which a caller with fewer rights must not get.
    """
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS) if body is not None else b""
    caller = call.caller
    rights = caller and [sorted(caller.scopes), None if caller.projects is None else sorted(caller.projects)]
    return hashlib.sha256(b"\x00".join((canonical, call.query_string, orjson.dumps(rights)))).digest()


def earlier(call: Call, key: ReplyKey, print_: bytes) -> Saved | None:
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


def saved(call: Call, reply: Reply, body: bytes, print_: bytes) -> Saved | None:
    """What is kept of a reply; None for a refusal, which can be tried again."""
    return None if reply.status >= 300 else kept(call, reply, body, print_)


def kept(call: Call, reply: Reply, body: bytes, print_: bytes) -> Saved:
    """A reply as it is kept for 24 hours of the sandbox clock."""
    return Saved(print_, call.now + DAY, reply.status, body, reply.headers)


def _conflict(code: str, message: str) -> Conflict:
    return Conflict(message, code=code, details=[detail("Idempotency-Key", code, message, "header")])
