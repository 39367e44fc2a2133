"""The lists that are state of a sandbox: its events, and the replies saved for Idempotency-Keys.

They grow at one end, and the oldest items go to make room. A step has the items that it adds, and
one that restores a state those that it takes back; what went to make room does not come back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import orjson

from ..core.clock import iso
from ..core.record import Extras

# beyond these, the oldest are dropped
MOST_EVENTS = 100_000
MOST_EVENT_BYTES = 64 * 1024 * 1024
PAGE_BYTES = 1024 * 1024  # of events that one page has, and one more
EVENT_OVERHEAD = 300  # bytes of an event besides the records that it shows
MOST_REPLIES = 10_000
MOST_REPLY_BYTES = 32 * 1024 * 1024
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
    """The newest items of which two lists differ, oldest first."""

    before: tuple[Any, ...] = ()
    after: tuple[Any, ...] = ()

    @property
    def mirrored(self) -> Ends:
        """The difference from the second list to the first."""
        return Ends(self.after, self.before)


def ends_of(before: Sequence[Any], after: Sequence[Any]) -> Ends:
    """How two lists differ after the stretch that they have in common, which is at the beginning of
    at least one.
    """
    first = second = 0
    if after and after[0] in before:
        first = before.index(after[0])
    elif before and before[0] in after:
        second = after.index(before[0])
    for old, new in zip(before[first:], after[second:], strict=False):
        if old is not new and old != new:  # mostly it is the same one: that is faster
            break
        first += 1
        second += 1
    return Ends(tuple(before[first:]), tuple(after[second:]))


class Queue(Generic[T]):
    """Items in their order: new ones come at the end, and the oldest go to make room for them.

    `size` is how many bytes they keep alive.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self.size = 0

    def exchange(self, ends: Ends) -> None:
        """Replace the newest items by others, for which the oldest make room."""
        for _ in range(min(len(ends.before), len(self._items))):
            self.size -= self._items.pop().size
        self._items.extend(ends.after)
        self.size += sum([item.size for item in ends.after])

    def _keep(self, most: int, most_bytes: int) -> None:
        """Drop the oldest items beyond so many and so many bytes."""
        while len(self._items) > most or self.size > most_bytes:
            self.size -= self._pop().size

    def _pop(self) -> T:
        """Take the oldest item out, whose bytes still count."""
        return self._items.popleft()

    def copy(self) -> Self:
        """An independent copy; items are shared, for they never change."""
        twin = copy(self)
        twin._items = self._items.copy()
        return twin

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._items)

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
        return EVENT_OVERHEAD + len(self.resource) + len(self.hidden) + len(self.extras.others)

    def payload(self) -> bytes:
        """The webhook body: compact JSON, the resource under its singular key, hidden
        fields beside it.
        """
        names, others = self.extras
        kept = orjson.loads(self.hidden) if names else {}
        beside = {name: kept.get(name) for name in names} | dict(orjson.loads(others))
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

    def __init__(self) -> None:
        super().__init__()
        self.raised = 0

    def exchange(self, ends: Ends) -> None:
        super().exchange(ends)
        self._keep(MOST_EVENTS, MOST_EVENT_BYTES)

    def since(self, position: int) -> Iterator[Event]:
        """The events that were raised after so many, oldest first, as far as they are kept."""
        return islice(self._items, max(0, len(self._items) - (self.raised - position)), None)

    def after(self, position: int, most: int) -> list[Event]:
        """The oldest events that were raised after so many, as far as they are kept; fewer where
        they are large.
        """
        found = []
        size = 0
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
    """The replies saved for Idempotency-Keys, in the order of their time."""

    def __init__(self) -> None:
        super().__init__()
        # None where replies were taken back, by many steps perhaps: nobody may ask between them
        self._found: dict[ReplyKey, Saved] | None = None

    @property
    def _newest(self) -> dict[ReplyKey, Saved]:
        """The newest reply to each key: there may be others, each saved when the one before had
        expired.
        """
        if self._found is None:
            self._found = {saved.key: saved for saved in self._items}
        return self._found

    def get(self, key: ReplyKey, now: int) -> Saved | None:
        """The reply saved for a key, unless it has expired."""
        newest = self._newest.get(key)
        if newest is None or newest.expires <= now:
            return None
        return newest

    def exchange(self, ends: Ends) -> None:
        super().exchange(ends)
        if ends.before:  # earlier ones may be the newest again
            self._found = None
        for saved in ends.after:
            self._newest[saved.key] = saved
        self._keep(MOST_REPLIES, MOST_REPLY_BYTES)

    def _pop(self) -> Saved:
        oldest = self._items.popleft()
        if self._newest[oldest.key] is oldest:
            del self._newest[oldest.key]
        return oldest

    def copy(self) -> Self:
        twin = super().copy()
        twin._found = self._newest.copy()
        return twin
