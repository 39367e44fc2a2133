"""The replies saved for Idempotency-Keys, the oldest first: bounded in number and in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Sequence

from ..kernel.ends import Ends
from .step import ReplyKey, Saved

KEPT, KEPT_BYTES = 10_000, 32 * 1024 * 1024
OVERHEAD = 500  # bytes of a reply besides its body


class Replies:
    """Saved replies by key.

    Their order is that of their time, for all are kept equally long. The dict is one whose first item costs the same
    to find however many have been taken from before it.
    """

    __slots__ = ("_bytes", "_held")

    def __init__(self) -> None:
        self._held: OrderedDict[ReplyKey, Saved] = OrderedDict()
        self._bytes = 0

    def get(self, key: ReplyKey) -> Saved | None:
        """The reply that was saved for a key."""
        return self._held.get(key)

    def items(self) -> ItemsView[ReplyKey, Saved]:
        """All of them."""
        return self._held.items()

    def outgoing(self, saved: Saved, now: int) -> tuple[tuple[ReplyKey, Saved], ...]:
        """Replies that make room for one more: those whose time is over, and the oldest of too many."""
        number, size = len(self._held) + 1 - KEPT, self._bytes + _size(saved) - KEPT_BYTES
        going = []
        for item in self._held.items():
            if item[1].expires > now and number <= 0 >= size:
                break
            going.append(item)
            number -= 1
            size -= _size(item[1])
        return tuple(going)

    def put(self, key: ReplyKey, saved: Saved) -> None:
        """Keep a reply."""
        self.drop(key)
        self._held[key] = saved
        self._bytes += _size(saved)

    def drop(self, key: ReplyKey) -> None:
        """Let a reply go, if it is there."""
        gone = self._held.pop(key, None)
        if gone is not None:
            self._bytes -= _size(gone)

    def put_back(self, gone: Sequence[tuple[ReplyKey, Saved]]) -> None:
        """Have replies again that had made room."""
        for key, saved in reversed(gone):
            self.put(key, saved)
            self._held.move_to_end(key, last=False)

    def exchange(self, ends: Ends) -> None:
        """Have the replies of another time, which differ at the ends from these."""
        for key, _ in (*ends.oldest_before, *ends.newest_before):
            self.drop(key)
        self.put_back(ends.oldest_after)
        for key, saved in ends.newest_after:
            self.put(key, saved)

    def copy(self) -> Replies:
        """An independent copy."""
        twin = Replies()
        twin._held, twin._bytes = self._held.copy(), self._bytes
        return twin


def _size(saved: Saved) -> int:
    return OVERHEAD + len(saved.body)
