"""Seeded API keys of a world's own: worlds are copied, and their keys must differ all the same."""

from ..domain.api_keys import digest
from ..engine.sandbox import DEFAULT, Sandbox
from .keys import pair_of


def mark_seeded(sandbox: Sandbox) -> None:
    """Remember which keys of a world are the seed's: those that it holds before anybody has used it."""
    sandbox.seeded_keys = frozenset(ident for store in sandbox.stores.values() for ident in store.api_keys.keys)


def derive_keys(sandbox: Sandbox, secret: bytes) -> None:
    """Give the seeded keys of a copied world secrets of its own. Those of the default world stay as they are poured."""
    if sandbox.name == DEFAULT:
        return
    for store in sandbox.stores.values():
        table = store.api_keys
        for ident in sandbox.seeded_keys & table.keys.keys():
            row = table.open(ident)
            assert row is not None
            public_key, private_key = pair_of(secret, sandbox.seed, ident, sandbox.name)
            if row.public["public_key"] == sandbox.credentials.get("public_key"):
                sandbox.credentials = {"public_key": public_key, "private_key": private_key}
            public = row.public | {"public_key": public_key}
            hidden = row.hidden | {"digest": digest(private_key)}
            record = table.prepare(ident, public, hidden, row)._replace(version=row.record.version)
            store.put(table, record, public, hidden, row)
