"""The sandboxes that are in memory: found by name, put there, and removed."""

from collections.abc import Callable

from ...core.clock import wall_ms
from ...core.problem import NotFound
from ...engine.sandbox import DEFAULT, Sandbox
from .entry import Entry, Keyring, folded, keys_of
from .generations import Generations
from .persistence import Persistence


class LoadedSandboxes:
    """Sandboxes by name. One that has expired is deleted when it is looked for."""

    def __init__(
        self, on_due: Callable[[Sandbox], None], persistence: Persistence, generations: Generations
    ) -> None:
        """`on_due` is called with a sandbox that is new or gone, and when something falls
        due in one.
        """
        self._on_due, self.persistence, self.generations = on_due, persistence, generations
        self.keyring = Keyring()
        self._entries: dict[str, Entry] = {}
        self.default: Sandbox  # the sandbox that is there from the start

    def _found(self, name: str) -> Entry | None:
        """What is known of a sandbox, if it is there and has not expired."""
        entry = self._entries.get(name) or self._entries.get(folded(name))
        if entry is None or self._has_expired(entry):
            return None
        return entry

    def find(self, name: str) -> Sandbox | None:
        """A sandbox that exists already."""
        entry = self._found(name)
        if entry is None:
            return None
        return entry.sandbox

    def choose(self, name: str) -> Sandbox | None:
        """A sandbox that exists already, which somebody uses now."""
        entry = self._found(name)
        if entry is None:
            return None
        entry.last_used_at, entry.uses = wall_ms(), entry.uses + 1
        return entry.sandbox

    def entry(self, name: str) -> Entry:
        """What is known of a sandbox that exists. Raises NotFound."""
        entry = self._found(name)
        if entry is None:
            message = f"There is no sandbox {name[:63]}. POST /_sandbox/sandboxes creates one."
            raise NotFound(message, code="sandbox_not_found")
        return entry

    def entries(self) -> list[Entry]:
        """The sandboxes that have not expired, those made last first."""
        for entry in list(self._entries.values()):
            self._has_expired(entry)
        return list(reversed(self._entries.values()))

    def seeded_owner(self, unique: str, value: str) -> str | None:
        """The sandbox that was seeded with an API key, which is no secret; None for other keys."""
        sandbox = self.find(self.keyring.get(value, ""))
        if sandbox is None:
            return None
        key = sandbox.store.api_keys.holder(unique, value)
        if key not in sandbox.origin.seeded_keys:
            return None
        return sandbox.name

    def sandboxes(self) -> list[Sandbox]:
        """The sandboxes that are in memory, those made first first."""
        return [entry.sandbox for entry in self._entries.values()]

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
        self.keyring.add(sandbox.name, keys_of(sandbox) if entry.keys is None else entry.keys)
        sandbox.status.on_due = self._on_due
        self._on_due(sandbox)

    def forget(self, name: str) -> None:
        """Delete a sandbox, if it is there and not the default one; the next use of its name
        creates another.
        """
        if name != DEFAULT and name in self._entries:
            self.persistence.delete_soon(name)
            entry = self._entries.pop(name)
            self.generations.delete(name, entry.sandbox.origin.generation)
            self._leave(entry)

    def unload(self, sandbox: Sandbox) -> None:
        """Remove a sandbox from memory; the store keeps it."""
        entry = self._entries.get(sandbox.name)
        if entry is not None and entry.sandbox is sandbox:
            self._leave(self._entries.pop(sandbox.name))
            if sandbox is self.default:
                # for what is refused before a sandbox is chosen
                self.default = sandbox.fork(DEFAULT)

    def _leave(self, entry: Entry) -> None:
        """Free what a removed sandbox held; its pending jobs are not done."""
        entry.sandbox.status.is_gone = True
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
