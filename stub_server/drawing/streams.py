"""Separate streams of luck, so that a change in one table of a world does not reshuffle the others."""

from __future__ import annotations

from random import Random

from ..kernel.ids import uuid_text


def stream(seed: int, *names: str) -> Random:
    """The stream of this name; on every machine and every Python the same."""
    return Random("/".join((str(seed), *names)))


def uuid(rng: Random) -> str:
    """A record's id."""
    return uuid_text(rng.getrandbits(128))
