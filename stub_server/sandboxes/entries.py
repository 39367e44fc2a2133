"""The sandboxes of a server by name: find, list, add and remove them; and which API key belongs to which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.clock import wall_ms
from ..kernel.problem import Conflict, NotFound
from ..kernel.text import glob
from ..persistence.commits import keys_of
from ..persistence.persistence import Persistence
from .entry import Entry, folded, too_many

MOST, MOST_KEYS = 1_000, 100_000


class Entries:
    """Sandboxes by name, at most `MOST`."""

    def __init__(self, on_due: Callable[[Sandbox], None], persistence: Persistence) -> None:
        self._on_due, self.persistence, self.keyring = on_due, persistence, Keyring()
        self._entries: dict[str, Entry] = {}
        self.default: Sandbox  # the sandbox that is there from the start
        self._named = count(persistence.epoch + 1)  # counts the names that are made up
        self._turns = count(1)  # how often sandboxes were used

    # -- finding

    def find(self, name: str) -> Sandbox | None:
        """A sandbox that exists already."""
        entry = self._entries.get(name) or self._entries.get(folded(name))
        return None if entry is None or self._has_expired(entry) else entry.sandbox

    def choose(self, name: str) -> Sandbox | None:
        """A sandbox that exists already, which somebody uses now."""
        entry = self._entries.get(name) or self._entries.get(folded(name))
        if entry is None or self._has_expired(entry):
            return None
        entry.last_used_at, entry.turn = wall_ms(), next(self._turns)
        return entry.sandbox

    def entry(self, name: str) -> Entry:
        """What is known of a sandbox that exists. Raises NotFound."""
        entry = self._entries.get(folded(name))
        if entry is None or self._has_expired(entry):
            raise NotFound(f"There is no sandbox {name[:63]}.", code="sandbox_not_found")
        return entry

    def entries(self, pattern: str = "*") -> list[Entry]:
        """The sandboxes whose name matches a glob, in which capitals mean the same; those made last first."""
        for entry in list(self._entries.values()):
            self._has_expired(entry)
        pattern = folded(pattern)
        return [entry for name, entry in reversed(self._entries.items()) if glob(pattern, name)]

    def seeded_owner(self, unique: str, value: str) -> str | None:
        """The sandbox that was seeded with an API key, which is no secret; None for other keys."""
        sandbox = self.find(self.keyring.sandbox_of(value) or "")
        if sandbox is None or sandbox.store.api_keys.holder(unique, value) not in sandbox.seeded_keys:
            return None
        return sandbox.name

    def sandboxes(self) -> list[Sandbox]:
        """The sandboxes that exist."""
        return [entry.sandbox for entry in self._entries.values()]

    def add_keys(self, name: str, keys: Sequence[str]) -> None:
        """API keys that a sandbox has from now on: digests of private ones, and public ones."""
        self.keyring.add(name, keys)
        self.persistence.add_keys(name, keys)

    # -- coming and going

    def put(self, entry: Entry) -> None:
        """Add a sandbox, in place of the one of its name."""
        sandbox = entry.sandbox
        before = self._entries.get(sandbox.name)
        self._entries[sandbox.name] = entry
        if before is not None:
            self._leave(before)
        if sandbox.name == DEFAULT:
            self.default = sandbox
        self.keyring.add(sandbox.name, keys_of(sandbox))
        sandbox.on_due = self._on_due
        self._on_due(sandbox)

    def take_back(self, entry: Entry) -> bool:
        """Delete the sandbox of a request that failed after it created it, unless others have used it since."""
        current = self._entries.get(entry.sandbox.name)
        if current is None or (current.born, current.turn) != (entry.born, entry.born):
            return False
        self.forget(entry.sandbox.name)
        return True

    def forget(self, name: str) -> None:
        """Delete a sandbox, if it is there and not the default one; the next use of its name creates another."""
        if name != DEFAULT and name in self._entries:
            self.persistence.leave_soon(name)
            self._leave(self._entries.pop(name))

    def unload(self, sandbox: Sandbox) -> None:
        """Remove a sandbox from memory; the store keeps it."""
        entry = self._entries.get(sandbox.name)
        if entry is not None and entry.sandbox is sandbox:
            self._leave(self._entries.pop(sandbox.name))

    def _leave(self, entry: Entry) -> None:
        """Free what a removed sandbox held; its pending jobs are not done."""
        entry.sandbox.is_gone = True
        entry.sandbox.log.close()
        entry.sandbox.journal.clear()
        self._on_due(entry.sandbox)
        entry.inbox.clear()
        entry.snapshots.clear()
        self.keyring.forget(entry.sandbox.name)

    def _has_expired(self, entry: Entry) -> bool:
        """Whether a sandbox has expired; if so, it is deleted."""
        if entry.expires_at is None or entry.expires_at > wall_ms():
            return False
        self.forget(entry.sandbox.name)
        return True

    def make_room(self) -> None:
        """At the limit, delete the one idle longest of those created on first use. Raises Conflict if there is none."""
        entries = self.entries()  # deletes those that have expired
        if len(entries) >= MOST:
            unnamed = [entry for entry in entries if entry.created_on_first_use]
            if not unnamed:
                raise too_many(MOST, "server")
            self.forget(min(unnamed, key=lambda entry: entry.turn).sandbox.name)


class Keyring:
    """Digests of private keys, and public keys, to the names of sandboxes.

    A key belongs to the first sandbox that names it, so a copy does not take its parent's keys away. This only says
    where to look; the sandbox decides whether the key is valid. Beyond `most` keys the oldest are forgotten. They are
    still valid under their sandbox's prefix or header.
    """

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._sandboxes: dict[str, str] = {}
        self._keys: dict[str, set[str]] = {}

    def sandbox_of(self, key: str) -> str | None:
        """The sandbox that a key's digest or public half belongs to."""
        return self._sandboxes.get(key)

    def add(self, sandbox: str, keys: Iterable[str]) -> None:
        """Keys that a sandbox has."""
        own = self._keys.setdefault(sandbox, set())
        for key in keys:
            if key in self._sandboxes:
                continue
            if len(self._sandboxes) >= self._most:
                oldest = next(iter(self._sandboxes))
                self._keys[self._sandboxes.pop(oldest)].discard(oldest)
            self._sandboxes[key] = sandbox
            own.add(key)

    def forget(self, sandbox: str) -> None:
        """Forget the keys of a deleted sandbox."""
        for key in self._keys.pop(sandbox, ()):
            del self._sandboxes[key]

    def __len__(self) -> int:
        return len(self._sandboxes)


def duplicate_name(name: str) -> Conflict:
    """409 for a name that a sandbox has."""
    advice = "Choose another name." if name == DEFAULT else f"DELETE /_sandbox/sandboxes/{name} deletes it."
    message = f"There is a sandbox {name} already. {advice}"
    return Conflict.at("name", message, "duplicate_sandbox")
