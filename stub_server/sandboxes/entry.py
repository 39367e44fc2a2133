"""What all sandboxes of a server begin with, and what the server knows of each."""

from dataclasses import dataclass, field

from ..delivery.inbox import Inbox
from ..engine.sandbox import Rules, Sandbox
from ..seeding.filling import Seeding
from ..settings import Settings
from .snapshots import Snapshots


@dataclass(frozen=True, slots=True)
class Origin:
    """What all sandboxes of a server begin with.

    `secret` signs; `control_secret` is random, whatever the seed, and makes the control keys.
    """

    rules: Rules
    seeding: Seeding
    settings: Settings
    secret: bytes = field(repr=False)
    control_secret: bytes = field(repr=False)


@dataclass(slots=True)
class Entry:
    """A sandbox and what the server knows of it. Times are the machine's, in ms.

    `mentioned`: it was created on first use of its name, and makes room for others. `inbox` and `snapshots` are not
    part of its state. `incarnation` changes with a reset or a rewind, since event ids then begin again;
    `origin_events` is how many events it began with.
    """

    sandbox: Sandbox
    parent: str | None
    mentioned: bool
    created_at: int
    last_used_at: int
    expires_at: int | None
    inbox: Inbox
    snapshots: Snapshots
    incarnation: str
    origin_events: int
    turn: int = 0  # when it was last used, finer than the clock
    born: int = 0  # its turn when it was made
