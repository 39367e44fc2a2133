"""Names of sandboxes, what the server knows of each, and of their records, keys and snapshots."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_hex
from typing import Any

import orjson

from ...core.ids import named_uuid
from ...core.problem import Conflict, NotFound
from ...engine.kept import Budget
from ...engine.sandbox import DEFAULT, SILENT, Sandbox
from ...settings import Settings
from ...storage.database import Kept
from ...storage.package import BadFile
from ...storage.state import MOST_SNAPSHOTS, Snapshot
from ...webhooks.inbox import Inbox

_BYTES = 8  # of a generation
# bytes of steps after which a state is written, of sandboxes whose state is smaller
LEAST = 64 * 1024 * 1024
MOST_SNAPSHOT_BYTES, MOST_SNAPSHOT_BYTES_IN_ALL = 256 * 1024 * 1024, 1024 * 1024 * 1024
NAMING = (
    "1 to 63 of the characters a-z, 0-9, -, _ and ., the first and the last of them a letter or a"
    " digit"
)
is_name = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,61}[a-z0-9])?").fullmatch


def folded(name: str) -> str:
    """A sandbox's name in lower case.

    Other alphabets stay, since some of their capitals become ASCII letters.
    """
    if not name.isascii():
        return name
    return name.lower()


def duplicate_name(name: str) -> Conflict:
    """409 for a name that a sandbox has."""
    advice = f"DELETE /_sandbox/sandboxes/{name} deletes it."
    if name == DEFAULT:
        advice = "Choose another name."
    return Conflict.at("name", f"There is a sandbox {name} already. {advice}", "duplicate_sandbox")


def made_up(prefix: str, number: int) -> str:
    """A generated name: the prefix and eight letters."""
    digits = named_uuid(prefix, str(number))[:8]
    return f"{prefix}-{digits.translate(str.maketrans('0123456789', 'ghijklmnop'))}"


def records_of(sandbox: Sandbox) -> int:
    """How many records all merchants of a sandbox have."""
    return sum(map(len, sandbox.tables()))


def keys_of(sandbox: Sandbox) -> set[str]:
    """The keys by which a sandbox is found: digests of private keys, and public keys."""
    found: set[Any] = set()
    for store in sandbox.stores.values():
        unique = store.api_keys.unique
        found.update(unique["digest"], unique["public_key"])
    return found


class Snapshots(dict[str, Snapshot]):
    """The snapshots of one sandbox by name, which stay when the log drops steps, bounded in number
    and bytes, in the order in which they were made.

    `budget` is shared by those of a server.
    """

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.budget = budget

    def named(self, name: str) -> Snapshot:
        """A snapshot. Raises NotFound."""
        if name not in self:
            raise NotFound(
                f"This sandbox has no snapshot {name[:63]}.",
                advice="GET /_sandbox/snapshots lists them.",
                code="snapshot_not_found",
            )
        return self[name]

    def check_room(self, snapshot: Snapshot) -> None:
        """Check that there is room for one more snapshot. Raises Conflict."""
        size = snapshot.size
        if snapshot.name in self:
            size -= self[snapshot.name].size
        elif len(self) >= MOST_SNAPSHOTS:
            raise _too_many(f"A sandbox has at most {MOST_SNAPSHOTS} snapshots.")
        self._check_bytes(size)

    def check_room_instead(self, snapshots: Iterable[Snapshot]) -> None:
        """Check that the snapshots of a file fit in the place of all of these. Raises BadFile."""
        try:
            self._check_bytes(_size(snapshots) - _size(self.values()))
        except Conflict as error:
            raise BadFile("too_large", error.message) from None

    def _check_bytes(self, more: int) -> None:
        if _size(self.values()) + more > MOST_SNAPSHOT_BYTES:
            raise _too_many(
                f"The snapshots of a sandbox have at most {MOST_SNAPSHOT_BYTES >> 20} MiB together."
            )
        if self.budget.used + more > self.budget.most:
            raise _too_many(
                f"The snapshots of all sandboxes have at most {self.budget.most >> 20} MiB"
                " together."
            )

    def keep(self, *snapshots: Snapshot) -> None:
        """Keep snapshots for which there is room, each in place of the one of the same name."""
        for snapshot in snapshots:
            self.drop(snapshot.name)
            self[snapshot.name] = snapshot
            self.budget.used += snapshot.size

    def drop(self, name: str) -> None:
        """Delete a snapshot, if it is there."""
        if name in self:
            self.budget.used -= self.pop(name).size

    def clear(self) -> None:
        """Delete all of them."""
        for name in list(self):
            self.drop(name)


def _size(snapshots: Iterable[Snapshot]) -> int:
    return sum([snapshot.size for snapshot in snapshots])


def _too_many(message: str) -> Conflict:
    return Conflict.at(
        "name", message, "too_many_snapshots", advice="DELETE /_sandbox/snapshots/NAME frees one."
    )


@dataclass(slots=True)
class Stored:
    """What a store has of a sandbox under its `number`.

    `committed` is the number of the newest step there, None while there is none of it. It has the
    state after a step, of so many bytes, and `size` bytes of steps since; `contract` is empty where
    these are not all of one. It has so many `states`, with those of snapshots. `leap` is the newest
    step that has no line, since a log does not keep one of that size: a state is stored in place
    of it.
    """

    number: int = 0
    contract: str = ""
    committed: int | None = None
    state_step: int = 0
    state_size: int = 0
    size: int = 0
    states: int = 1
    leap: int = 0

    @property
    def lacks_state(self) -> bool:
        """Whether nothing can be committed before a state is written."""
        return self.leap > self.state_step

    @property
    def is_long(self) -> bool:
        """Whether a state is to be written. One is read in half the time of its steps."""
        return self.lacks_state or self.size > max(LEAST, self.state_size // 2)


@dataclass(slots=True, eq=False)
class Entry:
    """A sandbox and what the server knows of it. Times are the machine's, in ms.

    One that was `created_on_first_use` of its name makes room for others. It is found by its `keys`
    (`keys_of`), also by those that have ended since. `inbox` and `snapshots` are not part of its
    state. `incarnation` changes with a reset or a rewind, since event ids then begin again;
    `origin_events` is how many events it began with.
    """

    sandbox: Sandbox
    parent: str | None
    created_on_first_use: bool
    created_at: int
    last_used_at: int
    expires_at: int | None
    inbox: Inbox
    snapshots: Snapshots
    keys: set[str]
    incarnation: str = ""
    origin_events: int = 0
    stored: Stored = field(default_factory=Stored)
    uses: int = 0  # requests to it in this process, without the one that created it

    @property
    def name(self) -> str:
        """The name of the sandbox."""
        return self.sandbox.name

    def row(self) -> Kept:
        """The row of the sandbox in a store."""
        sandbox = self.sandbox
        about = {
            "parent": self.parent,
            "on_first_use": self.created_on_first_use,
            "incarnation": self.incarnation,
            "origin_events": self.origin_events,
            "generation": sandbox.origin.generation,
            "contract": self.stored.contract,
            "size": self.stored.size,
            "states": self.stored.states,
            "held": sandbox.status.held_before,
            "scenario": sandbox.origin.scenario,
            "seed": sandbox.origin.seed,
            "records": records_of(sandbox),
            "clock": tuple(sandbox.clock.recorded),
        }
        return Kept(
            self.stored.number,
            sandbox.name,
            self.created_at,
            self.expires_at,
            self.last_used_at,
            _next_due(sandbox),
            sandbox.log.number,
            orjson.dumps(about).decode(),
        )


def _next_due(sandbox: Sandbox) -> int | None:
    """When the next delivery of a sandbox is due, in ms of the machine; None where none is, or its
    clock is frozen.
    """
    timers, clock = sandbox.timers, sandbox.clock
    if clock.frozen or sandbox.status.held_before == SILENT:
        return None
    attempts = [*timers.claimed.values(), timers.next_attempt()]
    due = [attempt.due for attempt in attempts if attempt is not None]
    return min(due) - clock.state.offset if due else None


class Generations:
    """Draws the generations of one server's sandboxes. Of all that ever have one name, each has
    credentials of its own: tokens, seeded keys, the control key and pay links are made from name
    and generation, so a new one ends all of them at once.

    On a public server they are random. On a plain one each follows from the seed, the name and the
    one before, so that tests are repeatable; the first one of a name is empty.
    """

    def __init__(self, settings: Settings) -> None:
        self._is_public, self._seed = settings.is_public, settings.seed
        self._next: dict[str, str] = {}  # by the names of deleted sandboxes

    def first(self, name: str) -> str:
        """The generation of a new sandbox."""
        if self._is_public:
            return token_hex(_BYTES)
        return self._next.get(name, "")

    def after(self, name: str, generation: str) -> str:
        """The generation that follows another one."""
        if self._is_public:
            return token_hex(_BYTES)
        return sha256(f"{self._seed}/{name}/{generation}".encode()).hexdigest()[: 2 * _BYTES]

    def delete(self, name: str, generation: str) -> None:
        """The sandbox is deleted: the next one of its name has another generation."""
        self._next[name] = self.after(name, generation)

    def take_back(self, name: str, generation: str) -> None:
        """The sandbox was never used: the next one of its name has this generation again."""
        self._next[name] = generation
