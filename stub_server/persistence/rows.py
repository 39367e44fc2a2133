"""The tables of a store, and the rows that are written and read. `docs/stores.md` says what they are for.

Every row carries a sum of its values, every step one that is chained to the step before, and a chunk is named by its
digest: a flipped bit, a gap or a row that is missing shows when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple
from zlib import crc32

FORMAT = 5  # of the tables and their content; up to 4 it was a directory with files of its own
SALVAGE = (
    "Start once with --salvage: what is whole is kept, and the damaged files are moved to a directory in this one."
)
STEPS = 32  # bits of a step's place for its number, after those for the number of its sandbox

TABLES = """
create table settings (name text primary key, value text not null, sum {int} not null);
create table chunks (digest {bytes} primary key, body {bytes} not null);
create table states (
    id {id}, sandbox {int} not null, is_used {int} not null, step {int} not null, chain {int} not null,
    size {int} not null, sum {int} not null
);
create table state_chunks (
    state {int} not null references states on delete cascade, place {int} not null,
    digest {bytes} not null references chunks, primary key (state, place)
);
create index state_chunks_digest on state_chunks (digest);
create table sandboxes (
    id {id}, name text unique, parent text, on_first_use {int} not null, created_at {int} not null, expires_at {int},
    contract text not null, last_used_at {int} not null, held {int}, incarnation text not null,
    origin_events {int} not null, newest {int} not null, chain {int} not null, state {int} not null,
    next_due {int}, summary text not null, sum {int} not null, holder {int} not null
);
create table snapshots (
    id {id}, sandbox {int} not null, name text not null, description text not null, now {int} not null,
    created_at {int} not null, contract text not null, state {int} not null, sum {int} not null, unique (sandbox, name)
);
create table credentials (credential text primary key, sandbox {int} not null);
create index credentials_sandbox on credentials (sandbox);
create index states_sandbox on states (sandbox);
create table steps (place {int} primary key, line {bytes} not null, sum {int} not null);
"""


class StoreError(Exception):
    """A store that cannot be used, with the reason."""


class Damage(StoreError):
    """Something in a store is not as it was written, or is not there."""


class Kept(NamedTuple):
    """What is stored of a sandbox beside its state. Times are ms of the machine.

    `held` is None where nothing is delivered, `newest` the number of its newest step and `chain` the sum of that,
    `state` the state that opening it begins with, `next_due` when a delivery is due (ms of the machine), `summary` what
    lists show of it, as JSON.
    """

    name: str | None
    parent: str | None
    on_first_use: int
    created_at: int
    expires_at: int | None
    contract: str
    last_used_at: int
    held: int | None
    incarnation: str
    origin_events: int
    newest: int
    chain: int
    state: int
    next_due: int | None
    summary: str


class KeptSnapshot(NamedTuple):
    """What is stored of a snapshot beside its state; `now` is ms of the sandbox's clock, `description` JSON."""

    name: str
    description: str
    now: int
    created_at: int
    contract: str
    state: int


class KeptState(NamedTuple):
    """A whole state: after which step, the chain's sum there, and its bytes."""

    id: int
    step: int
    chain: int
    size: int


def line_of(error: Exception) -> str:
    """The text of an error in one line: it may quote a database."""
    return " ".join(str(error).split())


def sum_of(*values: object) -> int:
    """The sum of a row."""
    return crc32(repr(values).encode())


def chained(line: bytes, chain: int) -> int:
    """The sum of a step that follows one with the sum `chain`."""
    return crc32(line, chain)


def digest_of(chunk: bytes) -> bytes:
    """The name of a chunk."""
    return blake2b(chunk, digest_size=16).digest()


def sum_of_state(sandbox: int, step: int, chain: int, size: int, digests: Iterable[bytes]) -> int:
    """The sum of a state's row, which covers the list of its chunks."""
    return sum_of(sandbox, step, chain, size, b"".join(digests))


def place_of(sandbox: int, number: int) -> int:
    """The place of a step among all: after the earlier ones of its sandbox."""
    return sandbox << STEPS | number


def checked(what: str, row: Any) -> Any:
    """A row without its sum, which comes last. Raises Damage."""
    *values, stored_sum = row
    if sum_of(*values) != stored_sum:
        raise Damage(f"{what} is damaged")
    return values
