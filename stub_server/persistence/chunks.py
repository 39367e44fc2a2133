"""A state as chunks of lines. Equal parts of two states give equal chunks, which are stored once.

So a chunk ends where the id of a record says so, and not after a number of them: a record that is added or deleted
changes the chunk that it is in and no other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import orjson

from ..files.state import SandboxState
from ..files.writing import columns, event_row, merchant_line, reply_line, sandbox_line

GROUP = 64  # events or timers of a line, and about so many records
MOST_GROUP = 512  # records
LEAST, MOST = 256 * 1024, 4 * 1024 * 1024  # bytes of a chunk, before it is compressed
_ENDS = 8  # one line of records in so many begins a chunk


def chunks_of(state: SandboxState) -> Iterator[bytes]:
    """The chunks of a state, in their order."""
    return _grouped(_lines(state))


def grouped(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as chunks, which may end anywhere."""
    return _grouped(item for line in lines for item in (LEAST, line))


def _grouped(items: Iterable[bytes | int]) -> Iterator[bytes]:
    """Lines as chunks; a number is a place where a chunk may end that has so many bytes."""
    lines: list[bytes] = []
    size = 0
    for item in items:
        if isinstance(item, bytes):
            lines.append(item)
            size += len(item) + 1
        elif lines and size >= item:
            yield b"\n".join(lines)
            lines, size = [], 0
    yield b"\n".join(lines)


def _lines(state: SandboxState) -> Iterator[bytes | int]:
    """The lines of a state, and between them how large a chunk must be to end there."""
    yield sandbox_line(state)
    yield 0
    places: dict[bytes, int] = {}
    count = 0
    for owned in state.owned.values():
        yield merchant_line(owned)
        yield 0
        for name in sorted(owned.rows):
            rows = owned.rows[name]
            for group in _groups(sorted(rows)):
                yield LEAST if not group[0] // GROUP % _ENDS else MOST
                records = [rows[key] for key in group]
                places.update(zip([record.public for record in records], range(count, count + len(group)), strict=True))
                count += len(group)
                yield orjson.dumps({"records": columns(name, records)})
        yield LEAST
    for kind, items in (
        ("events", (event_row(event, places.get(event.resource)) for event in state.events)),
        ("timers", map(tuple, sorted(state.timers.values()))),  # some are named, which orjson does not take
    ):
        while many := list(islice(items, GROUP)):
            yield orjson.dumps({kind: many})
            yield LEAST
    for reply in state.replies.items():
        yield reply_line(*reply)
        yield LEAST


def _groups(keys: list[int]) -> Iterator[list[int]]:
    """The keys of records for a line each: one begins with about every 64th id."""
    begin = 0
    for place in range(1, len(keys)):
        if not keys[place] % GROUP or place - begin >= MOST_GROUP:
            yield keys[begin:place]
            begin = place
    if keys:
        yield keys[begin:]
