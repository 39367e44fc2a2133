"""Seeded API keys, and signing keys.

Sandboxes are copied, but a key identifies its sandbox: each has halves of its own.
"""

from collections.abc import Iterator
from dataclasses import replace

from ..core.ids import derived_text, named_uuid
from ..core.record import Body, Row
from ..core.signing import new_key
from ..domain import api_keys
from ..engine.sandbox import DEFAULT, Sandbox
from ..engine.tables.store import Store

MAIN_ID = named_uuid("api_key", "main")


def pair_of(secret: bytes, seed: int, ident: str, identity: str = DEFAULT) -> tuple[str, str]:
    """Public and private half of a seeded key, by its id; they differ by the identity of
    the sandbox.
    """
    names = [str(seed), "api_key", ident]
    if identity != DEFAULT:
        names.append(identity)
    return (
        api_keys.PUBLIC + derived_text(secret, api_keys.PUBLIC_LENGTH, *names, "public"),
        api_keys.PRIVATE + derived_text(secret, api_keys.PRIVATE_LENGTH, *names, "private"),
    )


def own_pair(sandbox: Sandbox, ident: str = MAIN_ID) -> tuple[str, str]:
    """Both halves of a seeded key of a sandbox, by default of the one that its credentials show."""
    return pair_of(sandbox.rules.secret, sandbox.origin.seed, ident, sandbox.identity)


def own_signing_keys(sandbox: Sandbox, ident: str) -> Body:
    """The hidden member of a webhook of a sandbox with a signing key that no other one has."""
    seed, secret = str(sandbox.origin.seed), sandbox.rules.secret
    drawn = derived_text(secret, 32, seed, "webhook", ident, sandbox.identity)
    return {"signing_keys": [{"key": new_key(drawn.encode()), "until": None}]}


def derive_signing_keys(sandbox: Sandbox) -> None:
    """Give the webhooks of a new sandbox keys of its own, unless all keys follow from the seed."""
    if sandbox.origin.generation:
        for row in list(sandbox.store.webhooks.all_rows()):
            _replace(sandbox.store, row.keeping(own_signing_keys(sandbox, row.id)))


def derive_keys(sandbox: Sandbox) -> None:
    """Give the seeded keys of a new sandbox secrets of its own; a default one has them already."""
    for row in _seeded(sandbox):
        _replace(sandbox.store, renewed(sandbox, row))


def keep_newest(then: Sandbox, now: Sandbox) -> None:
    """Give the seeded keys of an earlier state of a sandbox the secrets that they have now."""
    then.renew(now.origin.generation)
    for row in _seeded(then):
        secrets = renewed(then, row)
        today = now.store.api_keys.open(row.id)
        if today is not None:  # else it was deleted since
            secrets = _with(row, today["public_key"], today["digest"])
        _replace(then.store, secrets)


def renewed(sandbox: Sandbox, row: Row) -> Row:
    """A seeded key with the secrets of its sandbox's generation."""
    public_key, private_key = own_pair(sandbox, row.id)
    return _with(row, public_key, api_keys.digest(private_key))


def _with(row: Row, public_key: str, digest: str) -> Row:
    return row.changed({"public_key": public_key}, {"digest": digest})


def _replace(store: Store, row: Row) -> None:
    """Put a changed record in the place of what it was, without a step."""
    if row.differs:
        made = store.tables[row.table].prepare(row)
        record = made.record._replace(version=row.record.version)
        store.replace(row.table, row.before, replace(made, record=record))


def _seeded(sandbox: Sandbox) -> Iterator[Row]:
    """The seeded keys, which are the seeded merchant's."""
    keys = sandbox.store.api_keys
    for ident in sandbox.origin.seeded_keys & keys.keys.keys():
        yield keys.get(ident)
