"""Separate random streams, so that a change to one table of a world does not change the others."""

from __future__ import annotations

from random import Random

from ..kernel.ids import uuid_text


def stream(seed: int, *names: str) -> Random:
    """The random stream of this name, the same on every machine and Python."""
    return Random("/".join((str(seed), *names)))


def uuid(rng: Random) -> str:
    """A record's id."""
    return uuid_text(rng.getrandbits(128))
