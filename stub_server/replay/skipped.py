"""Which requests a replay skips, and what it cannot replay at all: known before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ..engine.sandbox import DEFAULT
from ..files.package import BadFile
from ..journal.recordable import Asked, recording_start
from ..kernel.record import Body
from ..sandboxes.names import folded

# Why requests are skipped: a recording does not contain what their answers depend on.
FAULTS, LIMIT, CUT, MACHINES, EARLIER = "fault_rules", "rate_limit", "no_answer", "other_machines", "earlier_requests"
SNAPSHOTS, SANDBOXES = "earlier_snapshots", "other_sandboxes"
BODY, CONNECTION = "body_not_kept", "connection"
_NOT_SENT = MappingProxyType({"certifyWebhook": MACHINES, "certifyReceiver": MACHINES, "verifyRequests": EARLIER})
_READING = ("malformed_json", "payload_too_large")  # codes of what happens while a body is read
_OF_RULES = ("updateFault", "deleteFault")  # whose counters no replay has; the rule may be older than the recording


def brief(request: Body) -> Asked:
    """A recorded request, as far as it is needed here."""
    body, answer = request["body"].encode("latin-1"), (request["answer"] or "").encode("latin-1")
    return Asked(request["id"], request["operation"], request["status"], request["path"], body, answer)


def reasons(requests: Sequence[Body], name: str) -> Mapping[str, str]:
    """By their ids, why requests of a sandbox are skipped. Raises BadFile for what cannot be replayed."""
    every = [brief(request) for request in requests]
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
    return found | {request["id"]: reason for request in requests if (reason := _why(request)) is not None}


def is_sent(request: Body, reason: str | None) -> bool:
    """Whether a request is sent: a skipped one too, if later requests depend on its changes."""
    acts = request["after"] is not None or request["operation"] in _OF_RULES  # on deliveries at reserved names
    return reason is None or (reason in (FAULTS, CUT) and acts)


def _why(request: Body) -> str | None:
    """What headers of the request ask for, they ask for again, and that is compared."""
    if request["operation"] in _NOT_SENT:
        return _NOT_SENT[request["operation"]]
    if "fault:" in (request["simulated"] or "") or request["operation"] in _OF_RULES:
        return FAULTS
    if request["status"] == 429 and request["code"] == "rate_limited" and request["simulated"] is None:
        return LIMIT
    if request["status"] == 0:
        return CUT
    if _lacks_body(request):
        return BODY
    return CONNECTION if _is_of_connection(request) else None


def _lacks_body(request: Body) -> bool:
    """Whether the answer is about a body that was not kept: too large, broken off, or a file."""
    if request["body"]:
        return False
    return request["code"] in _READING or request["operation"] == "importSandbox"


def _is_of_connection(request: Body) -> bool:
    """Whether a request was refused for how it came: a header twice, a WebSocket, a client that left.

    What is wrong in the request itself the answer names.
    """
    return request["code"] == "malformed_request" and not brief(request).names_what()


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
            case "createSandbox", 201:
                sandboxes.add(str(request.answered("sandbox").get("name")))
            case "forkSandbox", 201:  # of a sandbox that was made then the recording has the beginning alone
                if folded(request.named()) == name:
                    sandboxes.add(str(request.answered("sandbox").get("name")))
                else:
                    found[request.id] = SANDBOXES
            case "deleteSandbox", 204:
                if folded(request.named()) not in sandboxes:
                    found[request.id] = SANDBOXES
                sandboxes.discard(folded(request.named()))
    return found
