"""The lists that are state of a sandbox: its events, and the replies saved for Idempotency-Keys.

They grow at one end and drop items at the other. A step has what is dropped and added at both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import islice, takewhile
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import orjson

from ..core.clock import iso
from ..core.record import Extras

# beyond these, the oldest are dropped
MOST_EVENTS, MOST_EVENT_BYTES = 100_000, 64 * 1024 * 1024
PAGE_BYTES = 1024 * 1024  # of events that one page has, and one more
EVENT_OVERHEAD = 300  # bytes of an event besides the records that it shows
MOST_REPLIES, MOST_REPLY_BYTES = 10_000, 32 * 1024 * 1024
REPLY_OVERHEAD = 500  # bytes of a reply besides its body

ReplyKey = tuple[str, str, str, str]
"""Merchant, method, path and Idempotency-Key of a request."""


class Sized(Protocol):
    """Something that knows about how many bytes it keeps alive."""

    @property
    def size(self) -> int:
        """Bytes."""


T = TypeVar("T", bound=Sized)


class Ends(NamedTuple):
    """The oldest and the newest items of which two lists differ, oldest first."""

    oldest_before: tuple[Any, ...] = ()
    oldest_after: tuple[Any, ...] = ()
    newest_before: tuple[Any, ...] = ()
    newest_after: tuple[Any, ...] = ()

    @property
    def mirrored(self) -> Ends:
        """The difference from the second list to the first."""
        return Ends(self.oldest_after, self.oldest_before, self.newest_after, self.newest_before)


UNCHANGED = Ends()


def ends_of(before: Sequence[Any], after: Sequence[Any]) -> Ends:
    """How two lists differ at their ends; without a stretch in common, all their items do."""
    first, second = _start_in_common(before, after)
    length = 0
    for old, new in zip(before[first:], after[second:], strict=False):
        if old is not new and old != new:  # mostly it is the same one: that is faster
            break
        length += 1
    return Ends(
        tuple(before[:first]),
        tuple(after[:second]),
        tuple(before[first + length :]),
        tuple(after[second + length :]),
    )


def _start_in_common(before: Sequence[Any], after: Sequence[Any]) -> tuple[int, int]:
    """Where the stretch in common begins in both lists: at the beginning of at least one."""
    if before and after:
        for place, item in enumerate(before):
            if item == after[0]:
                return place, 0
        for place, item in enumerate(after):
            if before[0] == item:
                return 0, place
    return 0, 0


class Queue(Generic[T]):
    """Items in their order: new ones come at the end, and the oldest go to make room for them.

    `size` is how many bytes they keep alive.
    """

    __slots__ = ("_items", "size")

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self.size = 0

    def _oldest(self, coming: Sequence[T], most: int, most_bytes: int) -> tuple[T, ...]:
        """The oldest items, as many as have to go so that with the new ones there are at most so
        many items and bytes.
        """
        number = len(self._items) + len(coming) - most
        size = self.size + sum([item.size for item in coming]) - most_bytes
        going = []
        for item in self._items:
            if number <= 0 and size <= 0:
                break
            going.append(item)
            number -= 1
            size -= item.size
        return tuple(going)

    def exchange(self, ends: Ends) -> None:
        """Replace the items by those of another time, which differ at the ends."""
        for _ in ends.newest_before:
            self.size -= self._items.pop().size
        for _ in ends.oldest_before:
            self.size -= self._items.popleft().size
        self._items.extendleft(reversed(ends.oldest_after))
        self._items.extend(ends.newest_after)
        self.size += sum([item.size for item in (*ends.oldest_after, *ends.newest_after)])

    def copy(self) -> Self:
        """An independent copy; items are shared, for they never change."""
        twin = copy(self)
        twin._items = self._items.copy()
        return twin

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


# -- events


class Event(NamedTuple):
    """One event. `resource` is the record's public bytes when it happened; they are shared with the
    store.

    So is `hidden`, the record's other part, if the payload shows a member of it; else it is empty.
    """

    id: str
    type: str
    at: int
    merchant_id: str
    key: str
    subject: str
    project_id: str | None
    resource: bytes
    hidden: bytes
    extras: Extras

    @property
    def size(self) -> int:
        """About how many bytes it keeps in memory."""
        return EVENT_OVERHEAD + len(self.resource) + len(self.hidden)

    def payload(self) -> bytes:
        """The webhook body: compact JSON, the resource under its singular key, hidden
        fields beside it.
        """
        names, others = self.extras
        kept = orjson.loads(self.hidden) if names else {}
        beside = {name: kept.get(name) for name in names} | dict(others)
        return orjson.dumps(
            {
                "type": self.type,
                "timestamp": iso(self.at),
                "id": self.id,
                "api_version": "v2",
                "environment": "sandbox",
                "merchant_id": self.merchant_id,
                "data": {self.key: orjson.Fragment(self.resource), **beside},
            }
        )


class EventLog(Queue[Event]):
    """The newest events of a sandbox, oldest first, bounded in number and bytes.

    `raised` counts all of them.
    """

    __slots__ = ("raised",)

    def __init__(self) -> None:
        super().__init__()
        self.raised = 0

    def outgoing(self, coming: Sequence[Event]) -> tuple[Event, ...]:
        """The oldest events, which are dropped when new ones come."""
        return self._oldest(coming, MOST_EVENTS, MOST_EVENT_BYTES)

    def since(self, position: int) -> Iterator[Event]:
        """The events that were raised after so many, oldest first, as far as they are kept."""
        return islice(self._items, max(0, len(self._items) - (self.raised - position)), None)

    def after(self, position: int, most: int) -> list[Event]:
        """The oldest events that were raised after so many, as far as they are kept; fewer where
        they are large.
        """
        found, size = [], 0
        for event in islice(self.since(position), most):
            found.append(event)
            size += event.size
            if size > PAGE_BYTES:
                break
        return found


# -- replies


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
