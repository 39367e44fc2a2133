"""Compares an answer with the recorded one, member for member but for what belongs to
the machine.
"""

import json
import re
from difflib import unified_diff
from typing import Any

from ...contract.secrets import REDACTED
from ...engine.journal import Trace
from .recorded import json_of

_NOT_COMPARED = frozenset(("date", "x-request-id", "ratelimit", "ratelimit-policy"))
# Times of the machine in answers of the control surface, and how many deliveries its receivers keep
# waiting.
_MACHINES = frozenset(("created_at", "last_used_at", "expires_at", "offset_seconds", "remaining"))
# the instant that a running clock shows, and how many deliveries are due then
_RUNNING = frozenset(("now", "resumed"))
_DERIVED = re.compile(r"pk_sandbox_[A-Za-z0-9]+|v1,[A-Za-z0-9+/=]{40,}")


def difference(
    recorded: Trace, replayed: Trace, *, other_secret: bool, other_file: bool, is_running: bool
) -> str:
    """What differs between two answers, as a diff; empty where nothing does.

    `other_secret`: keys and signatures that the server's secret makes are others, and are left out
    too. `other_file`: where the scenario's file is, which controls show, is left out as well.
    A clock that `is_running` goes on while a request is served: what controls show of it is the
    machine's.
    """
    skipped = (
        _MACHINES | ({"scenario"} if other_file else set()) | (_RUNNING if is_running else set())
    )
    hides_secrets = any(REDACTED.encode() in (each.answer or b"") for each in (recorded, replayed))
    unlike = set(_NOT_COMPARED)
    if hides_secrets or recorded.is_control:  # the length of what is left out does not matter
        unlike.add("content-length")
    if is_running and recorded.is_control:
        unlike.add("x-sandbox-now")
    before, after = _lines(recorded, skipped, unlike), _lines(replayed, skipped, unlike)
    # the recorded answer may repeat what the replay was not sent
    if hides_secrets and len(before) == len(after):
        before = [_without_hidden(*pair) for pair in zip(before, after, strict=True)]
    if other_secret:
        before, after = (
            [_DERIVED.sub("[derived]", line) for line in lines] for lines in (before, after)
        )
    if before == after:  # which comparing line by line may take long to see
        return ""
    return "\n".join(unified_diff(before, after, "recorded", "replayed", lineterm="", n=2))


def _without_hidden(recorded: str, replayed: str) -> str:
    """The replayed line, where the recorded one has the same around what the replayed one hides;
    else the recorded.
    """
    first, last = replayed.partition(REDACTED)[0], replayed.rpartition(REDACTED)[2]
    is_hidden = REDACTED in replayed and len(recorded) >= len(first) + len(last)
    return (
        replayed
        if is_hidden and recorded.startswith(first) and recorded.endswith(last)
        else recorded
    )


def _lines(request: Trace, skipped: frozenset[str], unlike: set[str]) -> list[str]:
    """An answer line by line, JSON indented, without the headers that are `unlike`."""
    parsed = json_of(request)
    if request.is_control and parsed is not None:
        parsed = _without(parsed, skipped)
    headers = [(name, value) for name, value in request.answer_headers if name not in unlike]
    step = "none" if request.after is None else f"{request.before} to {request.after}"
    lines = [f"status {request.status}", f"steps {step}"]
    lines += [f"{name}: {value}" for name, value in sorted(headers)]
    text = (request.answer or b"").decode("latin-1")
    shown = text if parsed is None else json.dumps(parsed, indent=2, ensure_ascii=False)
    return lines + shown.splitlines()


def _without(node: Any, skipped: frozenset[str]) -> Any:
    if isinstance(node, dict):
        return {
            name: "[the machine's]" if name in skipped else _without(member, skipped)
            for name, member in node.items()
        }
    return [_without(item, skipped) for item in node] if isinstance(node, list) else node
