"""A request with an Idempotency-Key: it is executed once, and its reply is saved."""

from hashlib import sha256
from typing import NamedTuple

import orjson

from ...core.clock import DAY
from ...core.problem import Conflict
from ...engine.lists import ReplyKey, Saved
from ..reply import Answer, Reply
from ..work import Work
from .way import Way

HEADER = b"idempotency-key"


class Once(NamedTuple):
    """What tells such a request from others, and from another one with its key."""

    key: ReplyKey
    fingerprint: bytes

    @classmethod
    def of(cls, way: Way) -> "Once":
        """That of a request.

        A quoted key and a bare one are the same.
        """
        text = way.headers[HEADER].decode("latin-1")
        if len(text) > 2 and text[0] == text[-1] == '"':
            text = text[1:-1]
        return cls(
            (way.store.merchant.id, way.request.method, way.trace.path, text),
            _fingerprint(way),
        )

    def earlier(self, work: Work) -> Answer | None:
        """The saved reply of an earlier request, or None for the first one. Raises Conflict."""
        if self.key in work.sandbox.status.in_progress:
            raise Conflict.at(
                "Idempotency-Key",
                "The first request with this key is still running. Retry soon.",
                "idempotency_in_progress",
                where="header",
            )
        saved = work.sandbox.replies.get(self.key, work.now)
        if saved is None:
            return None
        if saved.fingerprint != self.fingerprint:
            raise Conflict.at(
                "Idempotency-Key",
                "This key was used with another body, or by a caller with other rights. Use a new"
                " key.",
                "idempotency_key_reused",
                where="header",
            )
        reply = Reply(saved.status, (saved.body,), None, saved.headers)
        reply.headers.append((b"idempotent-replayed", b"true"))
        reply.body = saved.body
        reply.complete()
        return reply

    def saved(self, work: Work, reply: Reply) -> Saved:
        """A reply, whose body is joined, as it is saved: for 24 hours of the sandbox's clock."""
        return Saved(*self, work.now + DAY, reply.status, reply.body, tuple(reply.headers))


def _fingerprint(way: Way) -> bytes:
    """A hash that is equal for equal JSON bodies and queries of callers with equal rights.

    Rights count because a saved reply may hold a secret, which a caller with fewer rights must not
    get.
    """
    body, caller = way.body, way.caller
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS) if body is not None else b""
    rights = None
    if caller is not None:
        rights = [
            sorted(caller.scopes),
            None if caller.projects is None else sorted(caller.projects),
        ]
    return sha256(b"\x00".join((canonical, way.request.query, orjson.dumps(rights)))).digest()
