"""The event log of a sandbox: one entry per event, whose payload is written when it is needed."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import orjson

from ..core.clock import iso
from ..core.ends import Queue
from ..core.record import Extras

KEPT, KEPT_BYTES = 100_000, 64 * 1024 * 1024  # the oldest events are dropped beyond this
PAGE_BYTES = 1024 * 1024  # of events that one page has, and one more
OVERHEAD = 300  # bytes of an event besides the records that it shows


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
        return OVERHEAD + len(self.resource) + len(self.hidden)

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
        return self._oldest(coming, KEPT, KEPT_BYTES)

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
