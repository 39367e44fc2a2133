"""The inbox of a sandbox: a receiver for its webhooks that keeps messages and answers as
it was set to.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from ..contract.secrets import REDACTED, SECRET_HEADERS
from ..core.record import Row, has_more_lists, object_in
from ..core.signing import Verdict, verify
from ..domain.deliveries import kept_headers
from ..domain.webhooks import valid_keys
from ..engine.deliveries import INBOX
from ..engine.kept import Bounded, Budget
from ..engine.sandbox import Sandbox

MOST_NAMES = 100
MOST_MESSAGES = 1_000
MOST_BYTES = 16 * 1024 * 1024
MOST_LISTS = 20_000  # of a body whose type is read
OVERHEAD = 1_000  # bytes of a message besides its body and headers
SHOWN_BODY = 8_192  # bytes of each body that a list shows
is_name = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?").fullmatch

_MOST_ID = 200
_MOST_TYPE = 100
_MOST_SIGNERS = 200  # webhooks whose keys are tried
# bytes: a large body is tried with fewer keys, so that it does not delay other requests
_MOST_HASHED = 8 * 1024 * 1024


class Answer(NamedTuple):
    """What a name answers. `times` is how often before it answers 200 again; None is always."""

    status: int = 200
    delay_ms: int = 0
    headers: Sequence[Mapping[str, str]] = ()  # `name` and `value` of each
    times: int | None = None


class Message(NamedTuple):
    """One request received.

    `at` is ms of the sandbox clock; `headers` are by name in lower case.
    """

    number: int
    name: str
    at: int
    headers: dict[str, str]
    body: bytes
    event_id: str | None
    event_type: str | None
    verdict: Verdict
    answer: Answer

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        headers = chain(self.headers, self.headers.values())
        return OVERHEAD + len(self.body) + sum(map(len, headers))


OK = Answer()


@dataclass(slots=True)
class Box:
    """A name's state: what it answers, how many messages it received, and when the last one."""

    answer: Answer = OK
    received: int = 0
    last_at: int | None = None

    def next_answer(self) -> Answer:
        """What is answered now. One that is answered so many times only counts down to `OK`."""
        answer = self.answer
        if answer.times == 1:
            self.answer = OK
        elif answer.times is not None:
            self.answer = answer._replace(times=answer.times - 1)
        return answer


class Inbox(Bounded[Message]):
    """The messages of one sandbox. They are not part of its state.

    The oldest messages are dropped when there are too many, and the name longest unused when there
    are too many names.
    """

    def __init__(self, budget: Budget) -> None:
        """`budget` is shared with all that the sandboxes of a server keep."""
        super().__init__(budget)
        self._boxes: OrderedDict[str, Box] = OrderedDict()
        self._number = 0

    def receive(
        self, sandbox: Sandbox, name: str, headers: dict[str, str], body: bytes, wall: int
    ) -> Message:
        """Keep a request, with its answer.

        `wall` is the machine's time in ms, with which senders sign.
        """
        box = self._box(name)
        self._number += 1
        box.received += 1
        box.last_at = sandbox.clock.now
        event_type = None
        if not has_more_lists(body, MOST_LISTS):
            event_type = object_in(body).get("type")
        if not isinstance(event_type, str):
            event_type = ""
        message = Message(
            number=self._number,
            name=name,
            at=sandbox.clock.now,
            headers=_kept(headers),
            body=body,
            event_id=headers.get("webhook-id", "")[:_MOST_ID] or None,
            event_type=event_type[:_MOST_TYPE] or None,
            verdict=verify(headers, body, _keys(sandbox, INBOX + name, len(body)), wall // 1000),
            answer=box.next_answer(),
        )
        self._add(message, MOST_MESSAGES, MOST_BYTES)
        return message

    def set_answer(self, name: str, answer: Answer) -> None:
        """Set what a name answers from now on."""
        self._box(name).answer = answer

    def _box(self, name: str) -> Box:
        box = self._boxes.get(name)
        if box is None:
            if len(self._boxes) >= MOST_NAMES:
                self.clear(next(iter(self._boxes)))
            box = self._boxes[name] = Box()
        self._boxes.move_to_end(name)
        return box

    def boxes(self) -> list[tuple[str, Box, int]]:
        """Every name, the one used last first: its state, and how many of its messages are kept."""
        kept = Counter(message.name for message in self._items)
        return [(name, box, kept[name]) for name, box in reversed(self._boxes.items())]

    def messages(self, name: str) -> Iterator[Message]:
        """The messages of a name, the newest first."""
        return (message for message in reversed(self._items) if message.name == name)

    def clear(self, name: str | None = None) -> None:
        """Delete a name, its messages and its answer; without a name all of them."""
        messages = list(self._items)
        self._keep(0, 0)
        if name is None:
            self._boxes.clear()
            return
        self._boxes.pop(name, None)
        for message in messages:
            if message.name != name:
                self._add(message, MOST_MESSAGES, MOST_BYTES)


def _keys(sandbox: Sandbox, address: str, length: int) -> Iterator[tuple[str, str]]:
    """Webhook and key of all that may have signed, those with this address first."""
    rows: list[Row] = []
    for store in sandbox.stores.values():
        rows += islice(store.webhooks.all_rows(), _MOST_SIGNERS - len(rows))
    rows.sort(key=lambda row: not row["url"].endswith(address))
    pairs = []
    for row in rows:
        for key in valid_keys(row.hidden, sandbox.clock.now):
            pairs.append((row.id, key))
    return islice(pairs, max(1, _MOST_HASHED // (length + 1)))


def _kept(headers: dict[str, str]) -> dict[str, str]:
    """Headers without credentials, long ones cut."""
    kept = kept_headers(list(headers.items()))
    return kept | dict.fromkeys(kept.keys() & SECRET_HEADERS, REDACTED)
