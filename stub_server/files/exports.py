"""The file of a sandbox, which an export writes and an import reads, and its secrets.

An imported sandbox gets API keys that are derived from the server's secret. A file may be written without secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import orjson

from ..contract.secrets import REDACTED
from ..domain.api_keys import digest
from ..engine.bounded import Replies
from ..engine.sandbox import Rules, Sandbox
from ..engine.step import Step
from ..events.signing import new_key
from ..kernel.clock import ClockState, wall_ms
from ..kernel.ids import derived_text
from ..kernel.record import Body, Record
from ..seeding.keys import pair_of
from ..store.table import encoded
from .admitting import Admitted, admit
from .fitting import Fitting, Shapes
from .package import RECORDING, BadFile, digest_of, is_readable, pack, unpack
from .reading import Reader, Rewrite, Unreadable
from .state import SandboxState, Snapshot, capture
from .writing import Change, as_it_is, line_of, state_lines, step_line

MOST_SNAPSHOTS = 20
_USER = re.compile(r"^([^:/?#]+://)[^/?#]*@")  # the name and password before the host of an address
_OURS = ("content-", "user-agent", "webhook-")


def write_sandbox(
    file: IO[bytes],
    state: SandboxState,
    steps: Sequence[Step],
    contract: Body,
    snapshots: Sequence[Snapshot] = (),
    *,
    secrets: bool = True,
) -> None:
    """Write the file of a state, which is used up, with its history in the newest steps that led to it.

    Raises BadFile for a sandbox that is too large.
    """
    change: Change = as_it_is if secrets else blanked

    def lines() -> Iterator[bytes]:
        yield from sandbox_lines(state, steps, change, secrets=secrets)
        for name, description, now, created_at, sandbox, _ in snapshots:
            was = capture(sandbox)
            if not secrets:
                was.replies = Replies()
            head = {"name": name, "description": description, "now": now, "created_at": created_at}
            yield line_of("snapshot", head)
            yield from state_lines(was, change)

    pack(file, lines(), contract, secrets=secrets)


def sandbox_lines(state: SandboxState, steps: Sequence[Step], change: Change, *, secrets: bool) -> Iterator[bytes]:
    """The lines of a state and of the newest steps that led there."""
    if not secrets:
        state.replies = Replies()
        steps = list(map(without_replies, steps))
    lines = [step_line(step, change) for step in steps]
    too_long = [place for place, line in enumerate(lines) if not is_readable(line)]
    if too_long:  # the history begins after the last step that no file holds, such as one that went far back in time
        steps, lines = steps[too_long[-1] + 1 :], lines[too_long[-1] + 1 :]
    unrecorded = state.forget_unrecorded() if steps else {}
    for step in reversed(steps):
        state.unfold(step)
    yield from state_lines(state, change)
    yield from lines
    for merchant_id, used in sorted(unrecorded.items()):
        for key, usage in sorted(used.items()):
            yield line_of("use", {"merchant": merchant_id, "key": key, "usage": usage})


def without_replies(step: Step) -> Step:
    return step._replace(saved=None, forgotten_replies=())


class SandboxImporter:
    """Reads files for one server."""

    def __init__(self, fixtures: Path, secret: bytes, rules: Rules) -> None:
        self._shapes, self._secret, self._rules = Shapes(fixtures), secret, rules

    def admit(
        self,
        data: bytes | bytearray,
        name: str,
        keep: int,
        empty: Callable[[str, int], Sandbox],
        *,
        drop_unfit: bool = False,
    ) -> Admitted:
        """The sandbox of a file, under a name, with at most so many of its steps.

        `empty` and `drop_unfit` are as for `admitting.admit`. Raises BadFile.
        """
        snapshots: dict[str, tuple[Body, Reader]] = {}
        reading = unpack(data, self._shapes.check)
        _, header = next(reading)  # a file without one is refused
        keyless, requests = header["format"] == RECORDING, []
        rewrite = adopted(self._secret, name, anew=not header["secrets"], keyless=keyless)
        fitting = Fitting(self._rules, self._shapes, digest_of(header))
        reader = own = Reader(rewrite, keep, fitting)
        try:
            for kind, body in reading:
                if kind == "snapshot":
                    if body["name"] in snapshots or len(snapshots) == MOST_SNAPSHOTS:
                        raise Unreadable(f"one snapshot too many, {body['name']}")
                    reader = Reader(rewrite, fitting=fitting.afresh())
                    snapshots[body["name"]] = body, reader
                elif reader is not own and kind in ("step", "use"):
                    raise Unreadable(f"a line {kind!r} in a snapshot")
                elif kind == "request":
                    requests.append(body)
                elif kind == "later":  # what the requests did
                    own.read("step", body)
                elif kind not in ("recording", "outside"):  # which a replay alone asks for
                    reader.read(kind, body)
            found = admit(own, snapshots.values(), empty, self._secret, resumed, drop_unfit=drop_unfit)
            return found._replace(requests=requests)
        except Unreadable as error:
            raise BadFile("damaged", f"The file is damaged: {error}.") from None


def resumed(clock: ClockState) -> ClockState:
    """The clock of an imported sandbox: a running one continues from the instant of the export."""
    return clock if clock.frozen else clock._replace(offset=clock.now - wall_ms())


# -- secrets


def adopted(secret: bytes, name: str, *, anew: bool, keyless: bool = False) -> Rewrite:
    """Rewrites records for a sandbox of this name on this server: its seeded keys are those that the server derives.

    With `anew` the file holds no secrets, and keys that users made and signing keys are derived too; `keyless` ones
    hold no digests of API keys.
    """

    def rewrite(state: SandboxState, table: str, record: Record) -> Record:
        if table == "api_keys":
            is_seeded = record.id in state.seeded_keys
            if is_seeded or anew or keyless:
                public_key, private_key = pair_of(secret, state.seed, record.id, name)
                public = {"public_key": public_key} if is_seeded else {}
                return changed(record, public, {"digest": digest(private_key)})
        elif table == "webhooks" and anew:
            drawn = derived_text(secret, 32, str(state.seed), "webhook", record.id, name)
            return changed(record, {}, {"signing_keys": [{"key": new_key(drawn.encode()), "until": None}]})
        return record

    return rewrite


def blanked(table: str, record: Record) -> Record:
    """A record without its secrets."""
    if table == "api_keys":
        return changed(record, {}, {"digest": ""})
    if table == "webhooks":
        shown = orjson.loads(record.public)
        headers = [{**header, "value": REDACTED} for header in shown["headers"]]
        return changed(record, {"headers": headers, "url": _USER.sub(r"\1", shown["url"])}, {"signing_keys": []})
    if table == "webhook_logs":
        sent = orjson.loads(record.hidden)["request_headers"]
        kept = {name: value if name.startswith(_OURS) else REDACTED for name, value in sent.items()}
        url = _USER.sub(r"\1", orjson.loads(record.public)["url"])
        return changed(record, {"url": url}, {"request_headers": kept})
    return record


def changed(record: Record, public: Body, hidden: Body) -> Record:
    return record._replace(public=_with(record.public, public), hidden=_with(record.hidden, hidden))


def _with(part: bytes, changes: Body) -> bytes:
    return encoded(orjson.loads(part) | changes) if changes else part
