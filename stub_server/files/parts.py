"""Reads back what lines of a sandbox are made of: parts of records, events, timers, replies, the ends of lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..engine.step import ReplyKey, Saved
from ..events.log import Event
from ..kernel.ends import Ends
from ..kernel.record import NO_EXTRAS, Body, Extras
from ..kernel.timers import TimerData
from ..store.memory import Usage
from ..store.table import encoded, place


class Unreadable(ValueError):
    """Lines that are not those of a sandbox; the message says what is wrong with them."""


def ends(items: Iterable[Any], gone: list[int], back: list[list[Any]]) -> Ends:
    """How the ends of a list change: so many items go at each, and others come."""
    every = list(items)
    oldest, newest = gone
    if oldest + newest > len(every):
        raise Unreadable("more goes than there is")
    return Ends(tuple(every[:oldest]), tuple(back[0]), tuple(every[len(every) - newest :]), tuple(back[1]))


def key_in(body: Body) -> int:
    """A record's place."""
    return place(int(body["created"]), body["id"])


def use_of(told: Any) -> Usage | None:
    """How a key was used."""
    return None if told is None else (told[0], told[1])


def part_of(value: Any) -> bytes:
    """JSON that stands in a line as itself, or as text."""
    if isinstance(value, str):
        return value.encode()
    return b"" if value is None else encoded(value)


def event_of(body: Body, resource: bytes, hidden: bytes) -> Event:
    """An event of these parts. Raises Unreadable."""
    names, others = tuple(body["names"]), tuple((name, value) for name, value in body["others"])
    if names and not hidden:
        raise Unreadable(f"event {body['id']} names members of nothing")
    return Event(
        body["id"],
        body["type"],
        body["at"],
        body["merchant"],
        body["key"],
        body["subject"],
        body["project"],
        resource,
        hidden,
        Extras(names, others) if names or others else NO_EXTRAS,
    )


def timer_of(body: Body) -> TimerData:
    """A timer."""
    return body["due"], body["number"], body["job"], body["merchant"], body["subject"]


def reply_key(names: list[str]) -> ReplyKey:
    """What a saved reply is found by."""
    merchant_id, method, path, key = names
    return merchant_id, method, path, key


def reply_of(body: Body) -> tuple[ReplyKey, Saved]:
    """A saved reply, and what it is found by."""
    headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in body["headers"])
    saved = Saved(bytes.fromhex(body["fingerprint"]), body["expires"], body["status"], body["body"].encode(), headers)
    return reply_key(body["key"]), saved
