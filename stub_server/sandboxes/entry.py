"""Names of sandboxes, what the server knows of each, and of their keys."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..delivery.inbox import Inbox
from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.ids import named_uuid
from ..kernel.problem import Conflict
from .snapshots import Snapshots

MOST_KEYS = 100_000
NAMING = "1 to 63 of the characters a-z, 0-9, -, _ and ., the first and the last of them a letter or a digit"
is_name = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,61}[a-z0-9])?").fullmatch


def folded(name: str) -> str:
    """A sandbox's name in lower case. Other alphabets stay, since some of their capitals become ASCII letters."""
    return name.lower() if name.isascii() else name


def too_many(most: int, who: str) -> Conflict:
    """409 where there are as many sandboxes as a server or a store keeps."""
    message = (
        f"There are {most} sandboxes, the maximum of a {who}. DELETE /_sandbox/sandboxes/NAME deletes one; those "
        "that are created with ttl_seconds expire."
    )
    return Conflict.at("name", message, "too_many_sandboxes")


def duplicate_name(name: str) -> Conflict:
    """409 for a name that a sandbox has."""
    advice = "Choose another name." if name == DEFAULT else f"DELETE /_sandbox/sandboxes/{name} deletes it."
    message = f"There is a sandbox {name} already. {advice}"
    return Conflict.at("name", message, "duplicate_sandbox")


def made_up(prefix: str, number: int) -> str:
    """A generated name: the prefix and eight letters."""
    digits = named_uuid(prefix, str(number))[:8]
    return f"{prefix}-{digits.translate(str.maketrans('0123456789', 'ghijklmnop'))}"


@dataclass(slots=True)
class Entry:
    """A sandbox and what the server knows of it. Times are the machine's, in ms.

    One that was `created_on_first_use` of its name makes room for others. `inbox` and `snapshots` are not part of its
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
    incarnation: str
    origin_events: int
    turn: int = 0  # when it was last used, finer than the clock
    born: int = 0  # its turn when it was made


class Keyring(dict[str, str]):
    """The names of sandboxes by their keys: digests of private keys, and public keys.

    A key belongs to the first sandbox that names it, so a copy does not take its parent's keys away. This only says
    where to look; the sandbox decides whether the key is valid. Beyond `MOST_KEYS` the oldest are forgotten. They are
    still valid under their sandbox's prefix or header.
    """

    def add(self, sandbox: str, keys: Iterable[str]) -> None:
        """Keys that a sandbox has."""
        for key in keys:
            if key not in self:
                if len(self) >= MOST_KEYS:
                    del self[next(iter(self))]
                self[key] = sandbox

    def forget(self, sandbox: str) -> None:
        """Forget the keys of a deleted sandbox."""
        for key in [key for key, owner in self.items() if owner == sandbox]:
            del self[key]
