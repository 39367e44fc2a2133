"""The files of a sandbox, which an export writes and an import reads: its state alone, or a
recording.

A recording also has the requests to the sandbox, and the steps since. An imported
sandbox gets API keys that are derived from the server's secret. A file may be written without
secrets.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import IO

import orjson

from ..core.record import Body, Record, without
from ..data.keys import own_pair, own_signing_keys
from ..domain.api_keys import digest
from ..domain.callers import Identity
from ..domain.webhooks import ABROAD
from ..engine.kept import Trace
from ..engine.sandbox import Sandbox
from ..engine.step import Step, Used
from .fitting import Fitting
from .lines import Writer, changed, line_of
from .package import RECORDING, is_readable, pack
from .reading import Reader, Rewrite
from .state import Snapshot, capture

_SENDING = ("sendTestWebhook", "retryWebhook")


def write_sandbox(
    file: IO[bytes],
    sandbox: Sandbox,
    steps: Sequence[Step],
    snapshots: Sequence[Snapshot],
    *,
    secrets: bool,
) -> None:
    """Write the file of a copy of a sandbox, which is used up, with its history in the newest steps
    that led to it.

    Raises BadFile for a sandbox that is too large.
    """
    writer = Writer(secrets=secrets)

    def lines() -> Iterator[bytes]:
        yield from sandbox_lines(sandbox, steps, writer)
        for snapshot in snapshots:
            yield line_of("snapshot", snapshot.head)
            yield from writer.state(capture(snapshot.sandbox))

    pack(file, lines(), sandbox.rules.document.identity, secrets=secrets)


def sandbox_lines(sandbox: Sandbox, steps: Sequence[Step], writer: Writer) -> Iterator[bytes]:
    """The lines of a sandbox, which is used up, and of the newest steps that led there."""
    history = []
    for step in steps:
        line = writer.step(step)
        if is_readable(line):
            history.append((step, line))
        else:  # it begins after the last step that no file holds, such as one far back in time
            history.clear()
    for step, _ in reversed(history):
        unfold(sandbox, step)
    yield from writer.state(sandbox)
    for _, line in history:
        yield line


def unfold(sandbox: Sandbox, step: Step) -> None:
    """Undo the newest step of a copy."""
    sandbox.fold(step.mirrored)
    sandbox.log.number -= 1


# -- recordings


def write_recording(
    file: IO[bytes],
    sandbox: Sandbox,
    steps: Sequence[Step],
    *,
    about: Body,
    start: int,
    requests: Iterable[Body],
) -> None:
    """Write the file of a sandbox as it was after the step `start`, and of the requests since. It
    has no secrets.

    The sandbox is a copy, which is used up; `steps` are the newest ones that led to it. An import
    makes the state after them. Raises BadFile for a recording that is too large.
    """
    earlier = [step for step in steps if step.number <= start]
    later = steps[len(earlier) :]
    writer = Writer(secrets=False)

    def lines() -> Iterator[bytes]:
        yield line_of("recording", about)
        for step in reversed(later):
            unfold(sandbox, step)
        yield from sandbox_lines(sandbox, earlier, writer)
        for request in requests:
            yield line_of("request", request)
        for step in later:
            line = writer.step(step, kind="later")
            if is_readable(line):  # one that went far back in time is in no file
                yield line

    pack(file, lines(), sandbox.rules.document.identity, secrets=False, kind=RECORDING)


def is_outside(step: Body) -> bool:
    """Whether a receiver of webhooks had a part in a step of a recording."""
    return step["cause"]["kind"] == "delivery" or step["cause"]["operation"] in _SENDING


def step_for(sandbox: Sandbox, body: Body, fitting: Fitting) -> Step:
    """A step of a recording as the next one of a sandbox, with secrets of its own.

    Raises KeyError, ValueError.
    """
    clock = sandbox.clock.recorded
    at = clock if clock.now == body["at"] else sandbox.clock.at(body["at"])
    step = Reader.of(sandbox, adopted(anew=True, keeps_shown=True), fitting).step(
        without(body, "replies") | {"clock": at._asdict()}
    )
    if step.restores:
        return step
    (part,) = step.parts
    store = sandbox.stores[part.merchant.id]
    used = [Used(key, store.usage.get(key), before) for key, before in store.unrecorded.items()]
    return replace(step, parts=(part._replace(used=tuple(used)),))


# -- the requests as a journal has them


_OVERHEAD = 1_000  # bytes of a request besides what came and went
AS_THEY_ARE = (
    "id",
    "at",
    "method",
    "path",
    "before",
    "after",
    "status",
    "code",
    "simulated",
    "operation",
    "received",
    "is_prefixed",
)
MESSAGES = ("received_head", "body", "sent_head", "answer")
"""The bytes that came and went, which a file has as text of as many characters."""


def traces_of(
    requests: Sequence[Body], steps: Iterable[Step], sandbox: str, *, keeps_bodies: bool
) -> Iterator[Trace]:
    """The requests of a sandbox in their order; `steps` tell what they raised."""
    made = defaultdict[str, list[Step]](list)
    for step in steps:
        made[step.cause.id].append(step)
    for body in requests:
        trace = Trace(
            **{name: body[name] for name in AS_THEY_ARE},
            query=body["query"].encode("latin-1"),
            sandbox=sandbox,
            is_control=body["path"].startswith("/_sandbox"),
            size=_OVERHEAD,
        )
        for step in made.pop(trace.id, ()):
            trace.note(step)
        if body["caller"] is not None:
            trace.caller = Identity(**body["caller"])
        if trace.status in (401, 403):  # it came no further
            trace.auth_at = trace.began
        for name in MESSAGES:
            if keeps_bodies and body[name] is not None:
                setattr(trace, name, body[name].encode("latin-1"))
                trace.size += len(body[name])
        yield trace


# -- secrets


def adopted(
    *,
    anew: bool,
    keeps_shown: bool = False,
    abroad: bool | None = None,
) -> Rewrite:
    """Rewrites records for a sandbox of this server: its seeded keys are those that the server
    derives.

    With `keeps_shown` what answers show of keys stays. With `anew` the file holds no secrets, and
    keys that users made and signing keys are derived too. `abroad` says whether a page of another
    machine sent the file, and so the addresses of its webhooks; None keeps what records of a store
    say.
    """

    def rewrite(sandbox: Sandbox, table: str, record: Record) -> Record:
        if table == "api_keys":
            is_seeded = record.id in sandbox.origin.seeded_keys
            if is_seeded or anew:
                public_key, private_key = own_pair(sandbox, record.id)
                public = {}
                if is_seeded and not keeps_shown:
                    public["public_key"] = public_key
                return changed(record, public, {"digest": digest(private_key)})
        elif table == "webhooks":
            hidden = {}
            if anew:
                hidden = own_signing_keys(sandbox, record.id)
            if abroad is not None and orjson.loads(record.hidden).get(ABROAD, False) is not abroad:
                hidden[ABROAD] = abroad
            return changed(record, {}, hidden)
        return record

    return rewrite
