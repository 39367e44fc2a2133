"""The replies saved for Idempotency-Keys, bounded in number and bytes."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple, Self, TypeAlias

from ..core.ends import Ends, Queue

MOST_REPLIES, MOST_REPLY_BYTES = 10_000, 32 * 1024 * 1024
REPLY_OVERHEAD = 500  # bytes of a reply besides its body

ReplyKey: TypeAlias = tuple[str, str, str, str]
"""Merchant, method, path and Idempotency-Key of a request."""


class Saved(NamedTuple):
    """The reply to a request with an Idempotency-Key: `expires` is ms of the sandbox clock."""

    key: ReplyKey
    fingerprint: bytes
    expires: int
    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]

    @property
    def size(self) -> int:
        """About how many bytes it keeps in memory."""
        return REPLY_OVERHEAD + len(self.body)

    def __repr__(self) -> str:
        """Without the body, which may contain a secret."""
        return f"Saved(status={self.status}, expires={self.expires})"


class Replies(Queue[Saved]):
    """The replies saved for Idempotency-Keys, in the order of their time, in which they
    also expire.
    """

    __slots__ = ("_saved",)

    def __init__(self) -> None:
        super().__init__()
        self._saved: dict[ReplyKey, Saved] = {}

    def get(self, key: ReplyKey) -> Saved | None:
        """The reply saved for a key."""
        return self._saved.get(key)

    def outgoing(self, saved: Saved, now: int) -> tuple[Saved, ...]:
        """The replies to drop for one more: those that have expired, and the oldest of too many."""
        expired = takewhile(lambda reply: reply.expires <= now, self._items)
        return max(tuple(expired), self._oldest((saved,), MOST_REPLIES, MOST_REPLY_BYTES), key=len)

    def exchange(self, ends: Ends) -> None:
        super().exchange(ends)
        for saved in (*ends.oldest_before, *ends.newest_before):
            del self._saved[saved.key]
        for saved in (*ends.oldest_after, *ends.newest_after):
            self._saved[saved.key] = saved

    def copy(self) -> Self:
        twin = super().copy()
        twin._saved = self._saved.copy()
        return twin
