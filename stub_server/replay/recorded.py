"""The requests of a recording, and which of them a replay skips or cannot replay at all: known before any is sent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from ..engine.journal import Trace
from ..engine.sandbox import DEFAULT
from ..files.package import BadFile
from ..journal.recordable import answered, named, recording_start
from ..kernel.record import object_in
from ..sandboxes.entry import folded

# Why requests are skipped: a recording does not contain what their answers depend on.
FAULTS, LIMIT, CUT, MACHINES, EARLIER = "fault_rules", "rate_limit", "no_answer", "other_machines", "earlier_requests"
SNAPSHOTS, SANDBOXES = "earlier_snapshots", "other_sandboxes"
BODY, CONNECTION = "body_not_kept", "connection"
_NOT_SENT = {"certifyReceiver": MACHINES, "verifyRequests": EARLIER}
_READING = ("malformed_json", "payload_too_large")  # codes of what happens while a body is read
_OF_RULES = ("updateFault", "deleteFault")  # whose counters no replay has; the rule may be older than the recording


def name_of(request: Trace) -> str:
    """What reports call a request: its operation, if it has one."""
    return request.operation or f"{request.method} {request.path}"


def json_of(request: Trace) -> Any:
    """The parsed answer; None where it is no JSON."""
    try:
        return orjson.loads(request.answer or b"")
    except ValueError:
        return None


def seen(request: Trace) -> int:
    """The step that a request found. Snapshots and forks wait for their turn, while attempts to deliver end."""
    made = {"createSnapshot": "snapshot", "forkSandbox": "sandbox"}.get(request.operation or "")
    step = None if made is None or request.status != 201 else answered(request, made).get("step")
    return max(request.before, step) if isinstance(step, int) else request.before


def content(request: Trace) -> bytes:
    """The body to send; where the server made a sandbox's name up, it is asked for now."""
    body = request.body or b""
    if request.operation not in ("forkSandbox", "createSandbox") or request.status != 201:
        return body
    try:
        sent = orjson.loads(body) if body else {}
    except ValueError:
        return body
    name = answered(request, "sandbox").get("name")
    is_made_up = isinstance(sent, dict) and "name" not in sent and isinstance(name, str)
    return orjson.dumps(sent | {"name": name}) if is_made_up else body


def reasons(requests: Sequence[Trace], name: str) -> Mapping[str, str]:
    """By their ids, why requests of a sandbox are skipped. Raises BadFile for what cannot be replayed."""
    begun = recording_start(requests)
    if begun:
        at = requests[begun - 1]
        what = f"the snapshot {named(at)}" if at.operation == "restoreSnapshot" else "a request"
        raise BadFile(
            "unfit",
            f"It cannot be replayed: {at.id} goes back to {what} from before the recording, which it does not "
            "contain. Record again: the new recording starts later.",
        )
    found = _beyond(requests, name)
    return found | {request.id: reason for request in requests if (reason := _why(request)) is not None}


def is_sent(request: Trace, reason: str | None) -> bool:
    """Whether a request is sent: a skipped one too, if later requests depend on its changes."""
    acts = request.after is not None or request.operation in _OF_RULES  # on deliveries at reserved names
    return reason is None or (reason in (FAULTS, CUT) and acts)


def _why(request: Trace) -> str | None:
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
    is_unnamed = request.code == "malformed_request" and not object_in(request.answer).get("details")
    return CONNECTION if is_unnamed else None


def _beyond(requests: Iterable[Trace], name: str) -> dict[str, str]:
    """What is about snapshots that were taken, and sandboxes that were made, by no request of the recording."""
    snapshots: set[str] = set()
    sandboxes = {name, DEFAULT}
    found: dict[str, str] = {}
    for request in requests:
        match request.operation, request.status:
            case "createSnapshot", 201:
                snapshots.add(str(answered(request, "snapshot").get("name")))
            case "createSnapshot", 409:
                found[request.id] = SNAPSHOTS  # there are too many
            case "deleteSnapshot", 204:
                if named(request) not in snapshots:
                    found[request.id] = SNAPSHOTS
                snapshots.discard(named(request))
            case "createSandbox" | "forkSandbox", 409:
                if folded(str(object_in(request.body).get("name"))) not in sandboxes:
                    found[request.id] = SANDBOXES
            case "forkSandbox", 201 if folded(named(request)) != name:
                found[request.id] = SANDBOXES  # of a sandbox made then, the recording has the beginning alone
            case "createSandbox" | "forkSandbox", 201:
                sandboxes.add(str(answered(request, "sandbox").get("name")))
            case "rotateSandbox", 200:  # of another sandbox: a recording begins after those of its own
                found[request.id] = SANDBOXES
            case "deleteSandbox", 204:
                if folded(named(request)) not in sandboxes:
                    found[request.id] = SANDBOXES
                sandboxes.discard(folded(named(request)))
    return found
