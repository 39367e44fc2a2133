"""The file of a recording: a world, what was asked of it afterwards, and what receivers of webhooks answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

import orjson

from ..domain.api_keys import digest
from ..engine.sandbox import Sandbox
from ..engine.step import Cause, Step, Used
from ..kernel.record import Body, Record
from ..seeding.keys import pair_of
from ..store.table import encoded, parted, place
from .carrying import Carried, without_replies, world_lines
from .package import RECORDING, BadFile, is_readable, pack, unpack
from .parts import Unreadable
from .reading import Reader, Rewrite
from .secrets import adopted, blanked, changed
from .state import WorldState
from .writing import Change, as_it_is, step_line


class Recording(NamedTuple):
    """What was read of a recording. `outside` are lines of steps, `requests` and `about` as the file has them."""

    carried: Carried
    about: Body
    requests: list[Body]
    outside: list[Body]
    secrets: bool


def write_recording(
    file: IO[bytes],
    state: WorldState,
    earlier: Sequence[Step],
    about: Body,
    requests: Iterable[Body],
    outside: Iterable[Step],
    later: Sequence[Step],
    *,
    secrets: bool,
) -> None:
    """Write the file of a state that nobody else has and of what followed. Digests of API keys are in none.

    `later` are the steps since: who imports the file gets the state after them.

    Raises BadFile for a recording that is too large.
    """

    change = _keyless if secrets else blanked

    def lines() -> Iterator[bytes]:
        yield orjson.dumps({"recording": about})
        yield from world_lines(state, earlier, change, secrets=secrets)
        for request in requests:
            yield orjson.dumps({"request": request})
        for step in outside:
            plain = without_replies(step)
            yield _named(b"outside", plain, change)
        after = [_named(b"later", step if secrets else without_replies(step), change) for step in later]
        if all(map(is_readable, after)):  # one that went far back in time is in no file, and then what follows is not
            yield from after

    pack(file, lines(), secrets=secrets, kind=RECORDING)


def _named(kind: bytes, step: Step, change: Change) -> bytes:
    return b'{"%b":' % kind + step_line(step, change)[len(b'{"step":') :]


def _keyless(table: str, record: Record) -> Record:
    return blanked(table, record) if table == "api_keys" else as_it_is(table, record)


def read_recording(data: bytes, check: Callable[[str, Any], None], secret: bytes, keep: int) -> Recording:
    """What a file holds; every API key gets the private half that `private_key` tells. At most `keep` steps.

    Raises BadFile.
    """
    reader, about = Reader(), Body()
    requests: list[Body] = []
    outside: list[Body] = []
    has_secrets = False
    try:
        for kind, body in unpack(data, check, (RECORDING,)):
            if kind == "header":
                has_secrets = body["secrets"]
                reader = Reader(_renewed(secret, anew=not has_secrets), keep)
            elif kind == "recording":
                about = body
            elif kind == "request":
                requests.append(body)
            elif kind == "outside":
                outside.append(body)
            elif kind != "later":  # the requests are sent again
                reader.read(kind, body)
        carried = Carried(reader.state, reader.steps)
    except Unreadable as error:
        raise BadFile("damaged", f"The file is damaged: {error}.") from None
    if not about:
        raise _mute()
    return Recording(carried, about, requests, outside, has_secrets)


def private_key(secret: bytes, seed: int, ident: str, name: str) -> str:
    """The private half that an API key of a recording has where it is replayed."""
    return pair_of(secret, seed, ident, name)[1]


def requests_of(data: bytes, check: Callable[[str, Any], None]) -> list[Body]:
    """The requests of a file, in their order. Raises BadFile."""
    return [body for kind, body in unpack(data, check, (RECORDING,)) if kind == "request"]


def cut_before(file: IO[bytes], data: bytes, check: Callable[[str, Any], None], count: int) -> None:
    """Write the recording as it was before the last of its first so many requests. Raises BadFile."""
    requests = requests_of(data, check)
    step, secrets = requests[count - 1]["before"], True
    kept: list[bytes] = []
    for number, (kind, body) in enumerate(unpack(data, check, (RECORDING,))):
        if number == 0:
            secrets = body["secrets"]
        elif kind != "request" and (kind not in ("later", "outside") or body["number"] <= step):
            kept.append(orjson.dumps({kind: body}))
    kept += [orjson.dumps({"request": request}) for request in requests[: count - 1]]
    pack(file, kept, secrets=secrets, kind=RECORDING)


def about_of(data: bytes) -> Body:
    """What a recording says of itself, without reading the rest. Raises BadFile."""
    for kind, body in unpack(data, lambda kind, body: None, (RECORDING,)):
        if kind == "recording":
            return dict(body)
    raise _mute()


def _mute() -> BadFile:
    return BadFile("damaged", "The file is damaged: it does not say how its server was set.")


def _renewed(secret: bytes, *, anew: bool) -> Rewrite:
    """Records with credentials that the server knows: what answers show of keys stays as it was."""

    def rewrite(state: WorldState, table: str, record: Record) -> Record:
        if table == "api_keys":
            return changed(record, {}, {"digest": digest(private_key(secret, state.seed, record.id, state.name))})
        return adopted(secret, state.name, anew=True)(state, table, record) if anew else record

    return rewrite


def step_for(world: Sandbox, told: Body) -> Step:
    """A step of a recording that a receiver had a part in, as the next one of a world. Raises KeyError, ValueError.

    Its results are those of the recording; what webhooks keep to themselves is the world's own.
    """
    store = world.stores[told["merchant"]]
    puts = []
    for put in told.get("puts", ()):
        key = place(put["created"], put["id"])
        before = store.tables[put["table"]].rows.get(key)
        public, hidden = put["public"], put["hidden"]
        if put["table"] == "webhooks" and before is not None:
            own = orjson.loads(before.public)
            public, hidden = public | {"headers": own["headers"]}, orjson.loads(before.hidden)
        known = {} if before is None else {before.apart: before.apart}
        parts = parted(put["table"], encoded(hidden), known)
        record = Record(put["id"], key, put["version"], encoded(public), *parts)
        puts.append((put["table"], record, before))
    timers = world.timers.by_number()
    clock = world.recorded_clock
    return Step(
        number=world.log.number + 1,
        at=told["at"],
        cause=Cause(**told["cause"]),
        merchant=store.merchant,
        opens_store=False,
        puts=tuple(puts),
        drops=(),
        events=(),
        events_before=world.events.raised,
        forgotten_events=(),
        timers_set=tuple(
            (t["due"], t["number"], t["job"], t["merchant"], t["subject"]) for t in told.get("timers", ())
        ),
        timers_before=world.timers.last,
        timers_taken=tuple(timers[number] for number in told.get("taken", ()) if number in timers),
        used=tuple(Used(key, store.usage.get(key), before) for key, before in store.unrecorded.items()),
        saved=None,
        forgotten_replies=(),
        clock=clock if clock.now == told["at"] else world.clock.at(told["at"]),
        clock_before=clock,
        position=world.ids.position,
        position_before=world.ids.position,
        size=told["size"],
    )
