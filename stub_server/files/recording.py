"""The file of a recording: a sandbox, what was asked of it afterwards, and what receivers of webhooks answered."""

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
from .carrying import without_replies, world_lines
from .fitting import Fitting
from .package import RECORDING, BadFile, is_readable, pack, unpack
from .parts import Unreadable
from .reading import Reader, Rewrite
from .secrets import adopted, blanked, changed
from .state import WorldState
from .writing import Change, as_it_is, step_line


class Outline(NamedTuple):
    """What a recording says of itself, and its requests, as the file has them."""

    header: Body
    about: Body
    requests: list[Body]


class Recording(NamedTuple):
    """What is sent to a sandbox: its state and steps are in `reader`; `outside` are lines of steps."""

    reader: Reader
    outside: list[Body]


def write_recording(
    file: IO[bytes],
    state: WorldState,
    earlier: Sequence[Step],
    about: Body,
    requests: Iterable[Body],
    outside: Iterable[Step],
    later: Sequence[Step],
    contract: Body,
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

    pack(file, lines(), contract, secrets=secrets, kind=RECORDING)


def _named(kind: bytes, step: Step, change: Change) -> bytes:
    return b'{"%b":' % kind + step_line(step, change)[len(b'{"step":') :]


def _keyless(table: str, record: Record) -> Record:
    return blanked(table, record) if table == "api_keys" else as_it_is(table, record)


def outline(data: bytes, check: Callable[[str, Any], None]) -> Outline:
    """What a file says of itself, and its requests in their order. Raises BadFile."""
    header, about, requests = Body(), Body(), list[Body]()
    for kind, body in unpack(data, check, (RECORDING,)):
        if kind == "header":
            header = body
        elif kind == "recording":
            about = body
        elif kind == "request":
            requests.append(body)
    if not about:
        raise BadFile("damaged", "The file is damaged: it does not say how its server was set.")
    return Outline(header, about, requests)


def read_recording(data: bytes, secret: bytes, keep: int, fitting: Fitting, *, anew: bool) -> Recording:
    """What a file of which the outline is known holds besides; every API key gets the half that `private_key` tells.

    At most `keep` steps; with `anew` the file holds no secrets. Raises BadFile.
    """
    reader, outside = Reader(_renewed(secret, anew=anew), keep, fitting), list[Body]()
    try:
        for kind, body in unpack(data, _anything, (RECORDING,)):
            if kind == "outside":
                outside.append(_as_served(body, fitting))
            elif kind not in ("header", "recording", "request", "later"):  # the requests are sent again
                reader.read(kind, body)
        _ = reader.state
    except Unreadable as error:
        raise BadFile("damaged", f"The file is damaged: {error}.") from None
    return Recording(reader, outside)


def _as_served(step: Body, fitting: Fitting) -> Body:
    """A step with the versions that the served contract has."""
    puts = [put | {"public": fitting.shown(put["table"], put["public"])} for put in step.get("puts", ())]
    return step | {"puts": puts}


def private_key(secret: bytes, seed: int, ident: str, name: str) -> str:
    """The private half that an API key of a recording has where it is replayed."""
    return pair_of(secret, seed, ident, name)[1]


def cut_before(file: IO[bytes], data: bytes, count: int) -> None:
    """Write the recording, whose outline is known, as it was before its request of this number. Raises BadFile."""
    header, _, requests = outline(data, _anything)
    step = requests[count - 1]["before"]
    kept = [
        orjson.dumps({kind: body})
        for kind, body in unpack(data, _anything, (RECORDING,))
        if kind not in ("header", "request") and (kind not in ("later", "outside") or body["number"] <= step)
    ]
    kept += [orjson.dumps({"request": request}) for request in requests[: count - 1]]
    pack(file, kept, header.get("contract"), secrets=header["secrets"], kind=RECORDING)


def _anything(kind: str, body: Any) -> None:
    """Checks nothing."""


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
        known = {} if before is None else {before.shared: before.shared}
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
        timers_fired=tuple(timers[number] for number in told.get("taken", ()) if number in timers),
        used=tuple(Used(key, store.usage.get(key), before) for key, before in store.unrecorded.items()),
        saved=None,
        forgotten_replies=(),
        clock=clock if clock.now == told["at"] else world.clock.at(told["at"]),
        clock_before=clock,
        position=world.ids.position,
        position_before=world.ids.position,
        size=told["size"],
    )
