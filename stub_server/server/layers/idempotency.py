"""A request with an Idempotency-Key: it is executed once, and its reply is saved."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import orjson

from ...core.clock import DAY
from ...core.problem import Conflict
from ...engine.lists import ReplyKey, Saved
from ..reply import Answer, Reply
from ..work import Work

HEADER = b"idempotency-key"
REPLAYED = (b"idempotent-replayed", b"true")


class Repeatable:
    """One such request."""

    def __init__(self, work: Work, body: object) -> None:
        self._work = work
        self._key, self._fingerprint = _key_of(work), _fingerprint(work, body)

    def earlier(self) -> Answer | None:
        """The saved reply of an earlier request, or None for the first one. Raises Conflict."""
        sandbox = self._work.sandbox
        if self._key in sandbox.status.in_progress:
            message = "The first request with this key is still running. Retry soon."
            raise Conflict.at("Idempotency-Key", message, "idempotency_in_progress", where="header")
        saved = sandbox.replies.get(self._key, self._work.now)
        if saved is None:
            return None
        if saved.fingerprint != self._fingerprint:
            message = (
                "This key was used with another body, or by a caller with other rights. Use a new"
                " key."
            )
            raise Conflict.at("Idempotency-Key", message, "idempotency_key_reused", where="header")
        reply = Reply(saved.status, (saved.body,), None, (*saved.headers, REPLAYED))
        reply.body = saved.body
        reply.complete()
        return reply

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within it, a second request with the key is refused."""
        in_progress = self._work.sandbox.status.in_progress
        in_progress.add(self._key)
        try:
            yield
        finally:
            in_progress.discard(self._key)

    def saved(self, reply: Reply) -> Saved:
        """A reply, whose body is joined, as it is saved: for 24 hours of the sandbox's clock."""
        expires, headers = self._work.now + DAY, tuple(reply.headers)
        return Saved(self._key, self._fingerprint, expires, reply.status, reply.body, headers)


def _key_of(work: Work) -> ReplyKey:
    """Merchant, method, path and key of a request; a quoted key and a bare one are the same."""
    text = work.request.headers[HEADER].decode("latin-1")
    if len(text) > 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return work.store.merchant.id, work.request.method, work.trace.path, text


def _fingerprint(work: Work, body: object) -> bytes:
    """A hash that is equal for equal JSON bodies and queries of callers with equal rights.

    Rights count because a saved reply may hold a secret, which a caller with fewer rights must not
    get.
    """
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS) if body is not None else b""
    caller = work.caller
    rights = None
    if caller is not None:
        projects = None if caller.projects is None else sorted(caller.projects)
        rights = [sorted(caller.scopes), projects]
    parts = (canonical, work.request.query, orjson.dumps(rights))
    return sha256(b"\x00".join(parts)).digest()
