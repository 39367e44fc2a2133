"""A request of a recording, and which of them a replay skips or cannot replay at all: known before any is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from ..engine.journal import Trace
from ..engine.sandbox import DEFAULT
from ..files.package import BadFile
from ..journal.recordable import Asked, recording_start
from ..kernel.record import Body
from ..sandboxes.entry import folded

CONTROL = "/_sandbox"
# Why requests are skipped: a recording does not contain what their answers depend on.
FAULTS, LIMIT, CUT, MACHINES, EARLIER = "fault_rules", "rate_limit", "no_answer", "other_machines", "earlier_requests"
SNAPSHOTS, SANDBOXES = "earlier_snapshots", "other_sandboxes"
BODY, CONNECTION = "body_not_kept", "connection"
_NOT_SENT = MappingProxyType({"certifyWebhook": MACHINES, "certifyReceiver": MACHINES, "verifyRequests": EARLIER})
_READING = ("malformed_json", "payload_too_large")  # codes of what happens while a body is read
_OF_RULES = ("updateFault", "deleteFault")  # whose counters no replay has; the rule may be older than the recording


class Recorded(NamedTuple):
    """A request and its answer as a recording has them: `request` of `sandbox-file.yaml`; bytes are Latin-1 text."""

    id: str
    at: int
    wall: int
    method: str
    path: str
    query: str
    prefixed: bool
    headers: list[list[str]]
    body: str
    caller: Body | None
    operation: str | None
    before: int
    after: int | None
    status: int
    code: str | None
    simulated: str | None
    answer_headers: list[list[str]]
    answer: str | None

    @property
    def is_control(self) -> bool:
        """Whether it was for the control surface."""
        return self.path.startswith(CONTROL)

    @property
    def name(self) -> str:
        """What reports call it: its operation, if it has one."""
        return self.operation or f"{self.method} {self.path}"

    @property
    def asked(self) -> Asked:
        """What tells what it was about."""
        answer = (self.answer or "").encode("latin-1")
        return Asked(self.id, self.operation, self.status, self.path, self.body.encode("latin-1"), answer)

    def trace(self, sandbox: str) -> Trace:
        """What a journal finds a request by that is not sent."""
        return Trace(self.id, self.at, self.method, self.path, b"", sandbox, self.before)

    def json(self) -> Any:
        """The parsed answer; None where it is no JSON."""
        try:
            return orjson.loads((self.answer or "").encode("latin-1"))
        except ValueError:
            return None

    @property
    def seen(self) -> int:
        """The step that it found. Snapshots and forks wait for their turn, while attempts to deliver end."""
        made = {"createSnapshot": "snapshot", "forkSandbox": "sandbox"}.get(self.operation or "")
        step = None if made is None or self.status != 201 else self.asked.answered(made).get("step")
        return max(self.before, step) if isinstance(step, int) else self.before

    def content(self) -> bytes:
        """The body to send; where the server made a sandbox's name up, it is asked for now."""
        body = self.body.encode("latin-1")
        if self.operation not in ("forkSandbox", "createSandbox") or self.status != 201:
            return body
        try:
            sent = orjson.loads(body) if body else {}
        except ValueError:
            return body
        name = self.asked.answered("sandbox").get("name")
        is_made_up = isinstance(sent, dict) and "name" not in sent and isinstance(name, str)
        return orjson.dumps(sent | {"name": name}) if is_made_up else body


def reasons(requests: Sequence[Recorded], name: str) -> Mapping[str, str]:
    """By their ids, why requests of a sandbox are skipped. Raises BadFile for what cannot be replayed."""
    every = [request.asked for request in requests]
    begun = recording_start(every)
    if begun:
        at = every[begun - 1]
        what = f"the snapshot {at.named()}" if at.operation == "restoreSnapshot" else "a request"
        raise BadFile(
            "unfit",
            f"It cannot be replayed: {at.id} goes back to {what} from before the recording, which it does not hold. "
            "Recorded anew it begins after that.",
        )
    found = _beyond(every, name)
    return found | {request.id: reason for request in requests if (reason := _why(request)) is not None}


def is_sent(request: Recorded, reason: str | None) -> bool:
    """Whether a request is sent: a skipped one too, if later requests depend on its changes."""
    acts = request.after is not None or request.operation in _OF_RULES  # on deliveries at reserved names
    return reason is None or (reason in (FAULTS, CUT) and acts)


def _why(request: Recorded) -> str | None:
    """What headers of the request ask for, they ask for again, and that is compared."""
    if request.operation is not None and request.operation in _NOT_SENT:
        return _NOT_SENT[request.operation]
    if "fault:" in (request.simulated or "") or request.operation in _OF_RULES:
        return FAULTS
    if request.status == 429 and request.code == "rate_limited" and request.simulated is None:
        return LIMIT
    if request.status == 0:
        return CUT
    if not request.body and (request.code in _READING or request.operation == "importSandbox"):
        return BODY  # too large, broken off, or a file
    # A header twice, a WebSocket, a client that left: what is wrong in the request itself the answer names.
    return CONNECTION if request.code == "malformed_request" and not request.asked.names_what() else None


def _beyond(requests: Iterable[Asked], name: str) -> dict[str, str]:
    """What is about snapshots that were taken, and sandboxes that were made, by no request of the recording."""
    snapshots: set[str] = set()
    sandboxes = {name, DEFAULT}
    found: dict[str, str] = {}
    for request in requests:
        match request.operation, request.status:
            case "createSnapshot", 201:
                snapshots.add(str(request.answered("snapshot").get("name")))
            case "createSnapshot", 409:
                found[request.id] = SNAPSHOTS  # there are too many
            case "deleteSnapshot", 204:
                if request.named() not in snapshots:
                    found[request.id] = SNAPSHOTS
                snapshots.discard(request.named())
            case "createSandbox" | "forkSandbox", 409:
                if folded(str(request.sent().get("name"))) not in sandboxes:
                    found[request.id] = SANDBOXES
            case "forkSandbox", 201 if folded(request.named()) != name:
                found[request.id] = SANDBOXES  # of a sandbox made then, the recording has the beginning alone
            case "createSandbox" | "forkSandbox", 201:
                sandboxes.add(str(request.answered("sandbox").get("name")))
            case "deleteSandbox", 204:
                if folded(request.named()) not in sandboxes:
                    found[request.id] = SANDBOXES
                sandboxes.discard(folded(request.named()))
    return found
