"""Compares an answer with the recorded one, member for member but for what belongs to
the machine.
"""

import json
import re
from difflib import unified_diff
from typing import Any

from ...contract.secrets import REDACTED
from ...core.record import object_in
from ...engine.kept import Trace

_NOT_COMPARED = ("date", "x-request-id", "ratelimit", "ratelimit-policy")
# What is the machine's in answers of the control surface: its times, the instant that a running
# clock shows, how many deliveries its receivers keep waiting, and the path of its own scenario.
_MACHINES = frozenset(
    (
        "created_at",
        "last_used_at",
        "expires_at",
        "offset_seconds",
        "remaining",
        "now",
        "resumed",
        "scenario",
    )
)
_DERIVED = re.compile(r"pk_sandbox_[A-Za-z0-9]+|v1,[A-Za-z0-9+/=]{40,}")


def difference(recorded: Trace, replayed: Trace) -> str:
    """What differs between two answers, as a diff; empty where nothing does.

    Keys and signatures that a server's secret makes are left out.
    """
    unlike = set(_NOT_COMPARED)
    hides_secrets = REDACTED.encode() in (recorded.answer or b"") + (replayed.answer or b"")
    if hides_secrets or recorded.is_control:  # the length of what is left out does not matter
        unlike |= {"content-length", "x-sandbox-now"}
    before, after = _lines(recorded, unlike), _lines(replayed, unlike)
    # the recorded answer may repeat what the replay was not sent
    if hides_secrets and len(before) == len(after):
        before = list(map(_without_hidden, before, after))
    before, after = _without_derived(before), _without_derived(after)
    if before == after:  # which comparing line by line may take long to see
        return ""
    return "\n".join(unified_diff(before, after, "recorded", "replayed", lineterm="", n=2))


def _without_hidden(recorded: str, replayed: str) -> str:
    """The replayed line, where the recorded one has the same around what the replayed one hides;
    else the recorded.
    """
    first, last = replayed.partition(REDACTED)[0], replayed.rpartition(REDACTED)[2]
    if REDACTED not in replayed or len(recorded) < len(first) + len(last):
        return recorded
    if recorded.startswith(first) and recorded.endswith(last):
        return replayed
    return recorded


def _without_derived(lines: list[str]) -> list[str]:
    """The lines without keys and signatures that the server's secret makes."""
    return _DERIVED.sub("[derived]", "\n".join(lines)).split("\n")


def _lines(request: Trace, unlike: set[str]) -> list[str]:
    """An answer line by line, JSON indented, without the headers that are `unlike`."""
    parsed = object_in(request.answer)
    if request.is_control:
        parsed = _without_machines(parsed)
    lines = [f"status {request.status}", "steps none"]
    if request.after is not None:
        lines[1] = f"steps {request.before} to {request.after}"
    for name, value in sorted(request.answer_headers):
        if name not in unlike:
            lines.append(f"{name}: {value}")
    shown = (request.answer or b"").decode("latin-1")
    if parsed:
        shown = json.dumps(parsed, indent=2, ensure_ascii=False)
    return lines + shown.splitlines()


def _without_machines(node: Any) -> Any:
    """A value of JSON with the members that are the machine's left out, at every level."""
    if isinstance(node, list):
        return [_without_machines(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = dict.fromkeys(node, "[the machine's]")
    for name in node.keys() - _MACHINES:
        found[name] = _without_machines(node[name])
    return found
