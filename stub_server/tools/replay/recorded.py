"""The requests of a recording, and which of them a replay skips or cannot replay at all: known
before any is sent.
"""

from collections.abc import Mapping, Sequence

from ...core.record import object_in
from ...engine.kept import Trace
from ...server.journal.recordable import named, recording_start
from ...storage.package import BadFile

# Why requests are skipped: a recording does not contain what their answers depend on.
FAULTS, CUT, MACHINES = "fault_rules", "no_answer", "other_machines"
SNAPSHOTS, SANDBOXES, CREDENTIALS = "snapshots", "other_sandboxes", "credentials"
_NOT_SENT = {
    "certifyReceiver": MACHINES,
    "createFault": FAULTS,
    "updateFault": FAULTS,
    "deleteFault": FAULTS,
    "deleteFaults": FAULTS,
    "deleteSnapshot": SNAPSHOTS,
    "drainWebhooks": MACHINES,
    "verifyRequests": "earlier_requests",
    "listSandboxes": SANDBOXES,
    "getSandbox": SANDBOXES,
    "createSandbox": SANDBOXES,
    "forkSandbox": SANDBOXES,
    "deleteSandbox": SANDBOXES,
    "rotateSandbox": SANDBOXES,
}
_REFUSED = {"admin_key_required": CREDENTIALS, "too_many_snapshots": SNAPSHOTS}
_READING = ("malformed_json", "payload_too_large")  # codes of what happens while a body is read


def last_step(request: Trace) -> int:
    """The newest step once a request was answered."""
    if request.after is None:
        return request.before
    return request.after


def reasons(requests: Sequence[Trace]) -> Mapping[str, str]:
    """By their ids, why requests are skipped. Raises BadFile for what cannot be replayed."""
    begun = recording_start(requests)
    if begun:
        at = requests[begun - 1]
        what = f"the snapshot {named(at)}" if at.operation == "restoreSnapshot" else "a request"
        raise BadFile(
            "unfit",
            f"It cannot be replayed: {at.id} goes back to {what} from before the recording, which"
            " it does not contain. Record again: the new recording starts later.",
        )
    found = {}
    for request in requests:
        reason = _why(request)
        if reason is not None:
            found[request.id] = reason
    return found


def is_sent(request: Trace, reason: str | None) -> bool:
    """Whether a request is sent: a skipped one too, if later requests depend on its changes."""
    if reason in (FAULTS, CUT):
        return request.after is not None
    return reason in (None, SNAPSHOTS)


def _why(request: Trace) -> str | None:
    """What headers of the request ask for, they ask for again, and that is compared."""
    named = _NOT_SENT.get(request.operation or "") or _REFUSED.get(request.code or "")
    if named is not None:
        return named
    if "fault:" in (request.simulated or ""):
        return FAULTS
    if request.status == 429 and request.code == "rate_limited" and request.simulated is None:
        return "rate_limit"
    if request.status == 0:
        return CUT
    is_unknown = request.status == 401 and request.caller is None
    if is_unknown and "authorization" in dict(request.headers):
        return CREDENTIALS
    if not request.body and (request.code in _READING or request.operation == "importSandbox"):
        return "body_not_kept"  # too large, broken off, or a file
    # A header twice, a WebSocket, a client that left: what is wrong in the request itself the
    # answer names.
    if request.code == "malformed_request" and not object_in(request.answer).get("details"):
        return "connection"
    return None
