"""What a sandbox keeps besides its state, bounded in number and bytes: the log of its newest steps
and the journal of its newest requests. An inbox of `webhooks` is bounded alike.

All sandboxes of a server share a budget of bytes: past it, the largest queues drop their oldest
items. The journal is not part of the state. It has requests as the bytes that came and went; text
is made when somebody reads it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from time import perf_counter_ns
from typing import Any
from weakref import WeakKeyDictionary

from ..core.clock import iso, wall_ms
from ..core.signing import HeaderPairs
from ..domain.callers import Identity
from .lists import Queue, T
from .step import Step

MOST_BYTES = 32 * 1024 * 1024  # of a log, and of a journal
MOST_BYTES_IN_ALL = 256 * 1024 * 1024
KEPT = 2_000  # requests, unless told otherwise
LONGEST = 1_024  # characters of a path, and of a query, that are kept
_MOST_WARNINGS = 50  # of one request


class Budget:
    """How many bytes the logs, journals and inboxes of all sandboxes may take together.

    What was dropped is `used` too until there is no room left. `steps` counts what was recorded in
    the sandboxes whose logs share it.
    """

    def __init__(self, most: int = MOST_BYTES_IN_ALL) -> None:
        self.most = most
        self.used = 0
        self.steps = 0
        # Weak: a deleted sandbox must be freed. In order, so that ties are always decided alike.
        self._members: WeakKeyDictionary[Bounded[Any], None] = WeakKeyDictionary()

    def join(self, member: Bounded[Any]) -> None:
        """Add a member, which may have to drop items."""
        self._members[member] = None

    def make_room(self) -> None:
        """Drop the oldest items of the largest members.

        A little more than is needed, because finding the largest looks at all members.
        """
        goal = self.most - self.most // 64
        while (used := sum([member.size for member in self._members])) > goal:
            max(self._members, key=attrgetter("size")).forget(used - goal)
        self.used = used


class Bounded(Queue[T]):
    """Items in order, of which the oldest are dropped when they take too many bytes."""

    def __init__(self, budget: Budget) -> None:
        """`budget` is shared with other sandboxes."""
        super().__init__()
        self.budget = budget
        budget.join(self)

    def _add(self, item: T, number: int, most: int) -> None:
        """Add an item.

        The oldest make room beyond so many and so many bytes, and if the server has no room.
        """
        self._items.append(item)
        self.size += item.size
        self.budget.used += item.size
        self._keep(number, most)
        if self.budget.used > self.budget.most:
            self.budget.make_room()

    def forget(self, size: int) -> None:
        """Drop the oldest items of about so many bytes: at most half of all bytes, and at
        least one item.
        """
        self._keep(len(self._items) - 1, max(self.size // 2, self.size - size))


class Log(Bounded[Step]):
    """The steps since the origin. `number` is that of the newest one, 0 for a sandbox as it was
    seeded.

    The oldest steps are dropped when there are too many; their effects stay. `writer` is given each
    step to store outside the process, and `stored` waits until that is done.
    """

    def __init__(self, most: int, budget: Budget) -> None:
        """`most` is how many steps are kept; 0 keeps none."""
        super().__init__(budget)
        self._most = most
        self.number = 0
        self.writer: Callable[[Step], None] | None = None
        self.stored: Callable[[], Awaitable[None]] | None = None

    def append(self, step: Step) -> None:
        """Give the next step to the writer, and add it.

        If the writer refuses it, nothing has changed.
        """
        # Draft.record refuses a draft that another step has overtaken
        assert step.number == self.number + 1
        if self.writer is not None:
            self.writer(step)
        self.number = step.number
        if self._most:
            self._add(step, self._most, MOST_BYTES)

    def close(self) -> None:
        """Free the memory of a deleted sandbox. Later steps are dropped."""
        self._most = 0
        self.writer = None
        self.stored = None
        self._keep(0, 0)

    @property
    def oldest(self) -> int:
        """The number of the oldest step that is kept; one more than `number` when none is."""
        return self.number - len(self._items) + 1

    def fresh(self, number: int) -> Log:
        """An empty log with the same bounds, which continues at a step's number."""
        twin = Log(self._most, self.budget)
        twin.number = number
        return twin


# -- the journal


@dataclass(slots=True, eq=False)
class Trace:
    """What the journal has of one request.

    Layers note in it what they find out; `server/layers/context.py` completes it.

    `at` is the sandbox's time in ms and `before` its step; `began`, `received` and durations are
    the machine's. `operation` is an id, `by_command` says that the command `stub-server` sent it,
    `caller` is whose credential it was, also of a credential that was recognised and refused,
    `code` that of a refusal, `simulated` the rule or header that caused a failure or a delay.
    `before` and `after` are the newest step before its first change and after its last; `after` is
    None where it changed nothing. `events` and `deliveries` are the ids of what these changes
    raised. `auth_at` and so on are when a stage began, by the same counter as `began` (ns), 0 for a
    stage that was not entered.

    When it has ended there are no secrets in it: `received_head`, `body`, and of the answer
    `sent_head` and the body's `parts`. A head is all headers as one text (`head_of`), because
    thousands of requests are kept; that of an answer lacks the two that `id` and `at` say. A body
    is None where none was kept: the journal keeps none, it was never read, or the connection ended
    without an answer; `status` is then 0. `size` is about how many bytes all of it keeps alive.

    `refused_origin` is the origin of a page that may not read the answer. `is_prefixed` says that
    the path was sent with the sandbox's prefix, which is not in `path`. What is not `is_kept` is
    not written to the journal: pages and preflights. A path or query that is longer than any of the
    API is cut.
    """

    id: str
    at: int
    method: str
    path: str
    query: bytes
    sandbox: str = ""
    before: int = 0
    warnings: Sequence[str] = ()
    began: int = field(default_factory=perf_counter_ns)
    received: int = field(default_factory=wall_ms)
    after: int | None = None
    auth_at: int = 0
    body: bytes | None = None
    by_command: bool = False
    caller: Identity | None = None
    code: str | None = None
    deliveries: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    is_control: bool = False
    is_kept: bool = True
    is_prefixed: bool = False
    micros: int = 0
    operation: str | None = None
    parts: Sequence[bytes] | None = None
    received_head: bytes = b""
    refused_origin: str | None = None
    respond_at: int = 0
    rule_at: int = 0
    sent_head: bytes = b""
    simulated: str | None = None
    size: int = 0
    status: int = 0
    validate_at: int = 0

    def __post_init__(self) -> None:
        if len(self.path) > LONGEST:
            self.path = self.path[:LONGEST] + "…"
        if len(self.query) > LONGEST:
            self.query = self.query[:LONGEST] + "…".encode()

    def begin(self, at: int, before: int) -> None:
        """Begin only now, at the sandbox's time in ms and its step: the request had to wait."""
        self.at = at
        self.before = before
        self.began = perf_counter_ns()

    def warn(self, codes: Iterable[str]) -> None:
        """Add codes to X-Sandbox-Warnings, for what is accepted but may be a mistake."""
        if len(self.warnings) < _MOST_WARNINGS:  # each new one is compared with all
            self.warnings = tuple(dict.fromkeys((*self.warnings, *codes)))

    def note(self, step: Step) -> None:
        """Add a step that it recorded, with its events and deliveries."""
        if self.after is None:
            self.before = step.number - 1
        self.after = step.number
        if step.events:
            self.events += tuple(map(attrgetter("id"), step.events))
            for change in step.changes:
                if change.before is None and change.table == "webhook_logs":
                    self.deliveries += (change.id,)

    def lose(self) -> None:
        """Forget the steps, which were undone."""
        self.after = None
        self.events = ()
        self.deliveries = ()

    @property
    def answer(self) -> bytes | None:
        """The body of the answer."""
        return None if self.parts is None else b"".join(self.parts)

    @answer.setter
    def answer(self, body: bytes | None) -> None:
        """The body of the answer, joined; None where none was kept."""
        self.parts = None if body is None else (body,)

    @property
    def headers(self) -> HeaderPairs:
        """The headers received, names in lower case."""
        return [*headers_of(self.received_head)]

    @property
    def answer_headers(self) -> HeaderPairs:
        """The headers of the answer."""
        pairs = [*headers_of(self.sent_head)]
        if pairs and "x-request-id" not in dict(pairs):
            pairs += (("x-request-id", self.id), ("x-sandbox-now", iso(self.at)))
        return pairs

    @property
    def reached(self) -> str:
        """The last stage that it entered."""
        return self.stages()[-1][0]

    def stages(self) -> list[tuple[str, int]]:
        """The stages that it entered, each with its microseconds."""
        begun = {
            "respond": self.respond_at,
            "rule": self.rule_at,
            "validate": self.validate_at,
            "auth": self.auth_at,
            "route": self.began,
        }
        found = []
        end = self.began + self.micros * 1000
        for name, at in begun.items():
            if at:
                found.append((name, max(0, end - at) // 1000))
                end = at
        return found[::-1]


class Journal(Bounded[Trace]):
    """The newest requests, the oldest first; so many were ever `appended`.

    A request counts with its path, query, headers and bodies. Those to the control surface have as
    many places again, so that they take none from the API.
    """

    def __init__(self, most: int, budget: Budget) -> None:
        """`most` requests are kept; 0 keeps no bodies, and as many requests as usual.

        `budget` is the server's.
        """
        super().__init__(budget)
        self._most = most or KEPT
        self.keeps_bodies = most > 0
        self.appended = self._cleared = 0
        self._controls = 0  # how many of them went to the control surface

    def append(self, trace: Trace) -> None:
        """Keep a request; the oldest make room."""
        self.appended += 1
        self._controls += trace.is_control
        self._add(trace, self._most + min(self._controls, self._most), MOST_BYTES)

    def _pop(self) -> Trace:
        oldest = self._items.popleft()
        self._controls -= oldest.is_control
        return oldest

    @property
    def is_whole(self) -> bool:
        """Whether every request since the last clearing is still there."""
        return self.appended - len(self._items) == self._cleared

    def clear(self) -> None:
        """Delete every request."""
        self._keep(0, 0)
        self._cleared = self.appended

    def find(self, ident: str) -> Trace | None:
        """The request with an id, if it is still kept."""
        for trace in reversed(self._items):
            if trace.id == ident:
                return trace
        return None

    def fresh(self) -> Journal:
        """An empty journal of the same bounds, with which a fork begins."""
        return Journal(self._most if self.keeps_bodies else 0, self.budget)


def head_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Headers as one text: names and values in turn, a line each."""
    return b"\n".join(chain.from_iterable(headers))


def headers_of(head: bytes) -> Iterator[tuple[str, str]]:
    """The headers of such a text. None of them has a line break."""
    lines = iter(head.decode("latin-1").split("\n") if head else ())
    return zip(lines, lines, strict=False)
