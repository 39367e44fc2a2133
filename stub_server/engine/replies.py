"""The replies saved for Idempotency-Keys, bounded in number and bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView
from typing import NamedTuple, TypeAlias

from ..core.ends import Ends, oldest_of

MOST_REPLIES, MOST_REPLY_BYTES = 10_000, 32 * 1024 * 1024
REPLY_OVERHEAD = 500  # bytes of a reply besides its body

ReplyKey: TypeAlias = tuple[str, str, str, str]
"""Merchant, method, path and Idempotency-Key of a request."""


class Saved(NamedTuple):
    """The reply to a request with an Idempotency-Key: `expires` is ms of the sandbox clock."""

    fingerprint: bytes
    expires: int
    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]

    def __repr__(self) -> str:
        """Without the body, which may contain a secret."""
        return f"Saved(status={self.status}, expires={self.expires})"


SavedFor: TypeAlias = tuple[ReplyKey, Saved]
"""A reply with what it was saved for."""


class Replies:
    """The replies saved for Idempotency-Keys, in the order of their time, in which they
    also expire.
    """

    __slots__ = ("_bytes", "_saved")

    def __init__(self) -> None:
        # Not a dict: finding the first item of one takes the longer the more were removed before
        # it.
        self._saved: OrderedDict[ReplyKey, Saved] = OrderedDict()
        self._bytes = 0

    def get(self, key: ReplyKey) -> Saved | None:
        """The reply saved for a key."""
        return self._saved.get(key)

    def items(self) -> ItemsView[ReplyKey, Saved]:
        """All of them."""
        return self._saved.items()

    def outgoing(self, saved: Saved, now: int) -> tuple[SavedFor, ...]:
        """The replies to drop for one more: those that have expired, and the oldest of too many."""
        expired = 0
        for reply in self._saved.values():
            if reply.expires > now:
                break
            expired += 1
        number = max(expired, len(self._saved) + 1 - MOST_REPLIES)
        size = self._bytes + _size(saved) - MOST_REPLY_BYTES
        return oldest_of(self._saved.items(), number, size, lambda item: _size(item[1]))

    def exchange(self, ends: Ends) -> None:
        """Replace the replies by those of another time, which differ at the ends."""
        for key, saved in (*ends.oldest_before, *ends.newest_before):
            del self._saved[key]
            self._bytes -= _size(saved)
        for key, saved in (*reversed(ends.oldest_after), *ends.newest_after):
            self._saved[key] = saved
            self._bytes += _size(saved)
        for key, _ in reversed(ends.oldest_after):
            self._saved.move_to_end(key, last=False)

    def copy(self) -> Replies:
        """An independent copy."""
        twin = Replies()
        twin._saved, twin._bytes = self._saved.copy(), self._bytes
        return twin


def _size(saved: Saved) -> int:
    return REPLY_OVERHEAD + len(saved.body)
