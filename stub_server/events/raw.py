"""Deliveries as no client library sends them: cut off half way, or several at the same moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

from .sender import Delivery, Failed, Sender

_HEADSTART = 0.05  # seconds in which a receiver accepts the connections and reads


class _HungUp(Exception):
    """The connection is closed on purpose."""


async def send_half(sender: Sender, delivery: Delivery, at: int, timeout: float) -> None:
    """Post the head and half of the body, then close the connection. Raises Failed."""

    async def half() -> AsyncIterator[bytes]:
        yield delivery.body[: len(delivery.body) // 2]
        raise _HungUp

    with suppress(_HungUp):
        outcome = await sender.attempt(replace(delivery, pieces=half), timeout, at=at)
        raise Failed(outcome.error or "connection_failed")


async def send_together(sender: Sender, delivery: Delivery, at: int, copies: int, timeout: float) -> list[int | None]:
    """Post the same bytes over several connections at once; the status of each answer. Raises Failed."""
    ready, is_sent = asyncio.Barrier(copies), False

    async def in_step() -> AsyncIterator[bytes]:
        nonlocal is_sent
        yield delivery.body[:-1]
        # The last byte is sent separately, so that the receiver gets all copies complete at the same moment.
        await ready.wait()
        await asyncio.sleep(_HEADSTART)
        is_sent = True
        yield delivery.body[-1:]

    each = replace(delivery, pieces=in_step)
    outcomes = await asyncio.gather(*(sender.attempt(each, timeout, at=at) for _ in range(copies)))
    if not is_sent:
        raise Failed(outcomes[0].error or "connection_failed")
    return [outcome.status for outcome in outcomes]
