"""Idempotency-Key, where the contract takes one: the same request again gets the same answer, and is done once."""

import hashlib

import orjson

from ..kernel.clock import DAY
from ..kernel.problem import Conflict, detail
from ..operations.call import Call
from ..sandbox import Saved

HEADER = "idempotency-key"
KEPT = 10_000
REPLAYED = (b"idempotent-replayed", b"true")
Key = tuple[str, str, str, str]


def key_of(call: Call) -> Key | None:
    """Merchant, method, path and key of a request that carries one; a quoted key and a bare one are the same."""
    header = call.headers.get(HEADER.encode())
    if header is None:
        return None
    text = header.decode("latin-1")
    if len(text) > 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return call.store.merchant.id, call.trace.method, call.trace.path, text


def fingerprint(call: Call, body: object) -> bytes:
    """The same for two bodies that mean the same JSON, sent by callers who may do the same.

    A saved reply may hold a secret: whoever may do less than its first caller must not have it repeated.
    """
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS) if body is not None else b""
    caller = call.caller
    rights = caller and [sorted(caller.scopes), None if caller.projects is None else sorted(caller.projects)]
    return hashlib.sha256(b"\x00".join((canonical, call.query_string, orjson.dumps(rights)))).digest()


def begin(call: Call, key: Key, print_: bytes) -> Saved | None:
    """The saved reply of an earlier request, or None after noting that this one runs. Raises Conflict."""
    replies = call.sandbox.replies
    saved = replies.get(key)
    if saved is not None and saved.expires > call.now:
        if saved.fingerprint != print_:
            message = "This key was used with another body, or by a caller with other rights. Use a new key."
            raise _conflict("idempotency_key_reused", message)
        if saved.parts is None:
            raise _conflict("idempotency_in_progress", "The first request with this key still runs. Ask again soon.")
        return saved
    if len(replies) >= KEPT:
        _forget(call)
    replies[key] = Saved(print_, call.now + DAY)
    return None


def keep(call: Call, key: Key, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    """Remember a reply for 24 hours of the sandbox clock; a refusal is forgotten, so that it can be tried again."""
    saved = call.sandbox.replies.get(key)
    if saved is None:  # a reset came between
        return
    if status >= 300:
        del call.sandbox.replies[key]
        return
    saved.status, saved.parts, saved.headers = status, body, headers


def drop(call: Call, key: Key) -> None:
    """Forget a request that was refused."""
    call.sandbox.replies.pop(key, None)


def _forget(call: Call) -> None:
    replies = call.sandbox.replies
    for key in [key for key, saved in replies.items() if saved.expires <= call.now]:
        del replies[key]
    while len(replies) >= KEPT:
        del replies[next(iter(replies))]


def _conflict(code: str, message: str) -> Conflict:
    return Conflict(message, code=code, details=[detail("Idempotency-Key", code, message, "header")])
