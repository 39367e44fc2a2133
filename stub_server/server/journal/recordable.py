"""Which requests of the journal a recording contains, from which step on, and each as
a line of it.
"""

from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from ...core.problem import Conflict
from ...core.record import Body, object_in
from ...engine.history import not_stored
from ...engine.kept import Log, Trace
from ...engine.sandbox import Sandbox
from ...storage.exports import AS_THEY_ARE, MESSAGES
from .entries import caller_of, is_known, plain

_REPLACING = ("resetSandbox", "importSandbox")
"""They replace the sandbox: its log has nothing before them."""


def named(trace: Trace) -> str:
    """What the path of a request names in `/_sandbox/<kind>/<name>/…`."""
    parts = trace.path.split("/", 4)
    if len(parts) < 4:
        return ""
    return unquote(parts[3])


def answered(trace: Trace, member: str) -> Body:
    """A member of the answer to a request; empty where it is no object."""
    found = object_in(trace.answer).get(member)
    if not isinstance(found, dict):
        return {}
    return found


def recording_start(requests: Iterable[Trace]) -> int:
    """How many requests, in the order in which they acted, must be left out for the others to be
    sent again.

    A snapshot that is restored must have been taken by one of those others, and a request that a
    rewind names be one.
    """
    begun = 0
    snapshots: set[str] = set()
    idents: set[str] = set()
    for number, request in enumerate(requests, 1):
        if request.operation == "createSnapshot" and request.status == 201:
            snapshots.add(str(answered(request, "snapshot").get("name")))
        elif request.status == 200 and _goes_beyond(request, snapshots, idents):
            begun = number
            snapshots.clear()
            idents.clear()
        idents.add(request.id)
    return begun


def _goes_beyond(request: Trace, snapshots: set[str], idents: set[str]) -> bool:
    if request.operation == "restoreSnapshot":
        return named(request) not in snapshots
    if request.operation != "rewindSandbox":
        return False
    to_request = object_in(request.body).get("to_request")
    return to_request is not None and to_request not in idents


def chosen(sandbox: Sandbox) -> tuple[list[Trace], int]:
    """The newest requests of a sandbox before which its state is kept, in the order in which they
    acted.

    And how many the journal has that cannot be sent again, or are older than the steps. Raises
    Conflict where there are none but those.
    """
    if not sandbox.journal.keeps_bodies:
        raise _not_recordable(
            "The journal of this server stores no bodies (--journal 0), so nothing can be recorded."
        )
    ordered = _of_this_state(sandbox.journal)
    found = _since(ordered, _oldest_state(sandbox.log))
    found = found[recording_start(found) :]
    if ordered and not found:
        raise _not_recordable(
            "The state before the stored requests is no longer stored, or the newest one went back"
            " to it. Send further requests, then record."
        )
    return found, len(ordered) - len(found)


def _since(ordered: Sequence[Trace], oldest: int) -> list[Trace]:
    """The newest requests that can be sent again to what is stored, up to an `oldest` state.

    A body that is not there had no part in what was done: its operation takes none, or the request
    was refused.
    """
    found: list[Trace] = []
    for trace in reversed(ordered):
        is_whole = is_known(trace)
        if trace.before < oldest or (trace.after is not None and not is_whole):
            break
        if is_whole:
            found.append(trace)
    found.reverse()
    return found


def _not_recordable(message: str) -> Conflict:
    return not_stored(message, "requests", "query")


def _oldest_state(log: Log) -> int:
    """The step with which the oldest state ends that requests can be sent to again: before a
    rotation, callers had other credentials.
    """
    oldest = log.oldest - 1
    for step in log:
        if step.cause.operation == "rotateSandbox":
            oldest = max(oldest, step.number)
    return oldest


def _of_this_state(journal: Iterable[Trace]) -> list[Trace]:
    """The requests since the sandbox was replaced last, in the order of their changes: the journal
    has them in the order in which they ended.
    """
    found: list[Trace] = []
    for trace in journal:
        found.append(trace)
        if trace.operation in _REPLACING and trace.status == 200:
            found.clear()
    # those that only read a state come before the one that changed it
    return sorted(found, key=lambda trace: (trace.before, trace.after is not None))


def line(trace: Trace) -> Body:
    """A request as a recording holds it."""
    messages: Body = {}
    for name in MESSAGES:
        message = getattr(trace, name)
        messages[name] = None if message is None else message.decode("latin-1")
    return {
        **{name: getattr(trace, name) for name in AS_THEY_ARE},
        **messages,
        "method": plain(trace.method),
        "path": plain(trace.path),
        "query": trace.query.decode("latin-1"),
        "caller": caller_of(trace, "kind", "key_id", "claims", "subject", "merchant_id"),
    }
