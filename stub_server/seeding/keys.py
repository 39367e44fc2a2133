"""Seeded API keys. Sandboxes are copied, but a key identifies its sandbox: each has halves of its own."""

from dataclasses import replace

from ..domain import api_keys
from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.ids import derived_text, named_uuid
from ..kernel.record import Row

MAIN_ID = named_uuid("api_key", "main")


def pair_of(secret: bytes, seed: int, ident: str, sandbox: str = DEFAULT) -> tuple[str, str]:
    """Public and private half of a seeded key, by its id; they differ by sandbox."""
    names = (str(seed), "api_key", ident) if sandbox == DEFAULT else (str(seed), "api_key", ident, sandbox)
    return (
        api_keys.PUBLIC + derived_text(secret, api_keys.PUBLIC_LENGTH, *names, "public"),
        api_keys.PRIVATE + derived_text(secret, api_keys.PRIVATE_LENGTH, *names, "private"),
    )


def mark_seeded(sandbox: Sandbox) -> None:
    """Remember which keys of a sandbox are the seed's: those that it has before anybody has used it."""
    sandbox.seeded_keys = frozenset(ident for store in sandbox.stores.values() for ident in store.api_keys.keys)


def derive_keys(sandbox: Sandbox, secret: bytes) -> None:
    """Give the seeded keys of a copied sandbox secrets of its own. Those of the default sandbox stay as they are."""
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
            hidden = row.hidden | {"digest": api_keys.digest(private_key)}
            record = replace(table.prepare(ident, public, hidden, row, row.record.created), version=row.record.version)
            store.replace(table.name, row, Row(record, public, hidden))
