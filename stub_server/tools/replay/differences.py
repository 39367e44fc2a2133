"""Compares an answer with the recorded one, member for member but for what belongs to the machine."""

import json
import re
from copy import copy
from difflib import unified_diff
from typing import Any

import orjson

from ...contract.secrets import REDACTED
from ...engine.journal import Trace
from .recorded import json_of

_NOT_COMPARED = frozenset(("date", "x-request-id", "ratelimit", "ratelimit-policy"))
# Times of the machine in answers of the control surface, and how many deliveries its receivers keep waiting.
_MACHINES = frozenset(("created_at", "last_used_at", "expires_at", "offset_seconds", "remaining"))
_RUNNING = frozenset(("now", "resumed"))  # the instant that a running clock shows, and how many deliveries are due then
_DERIVED = re.compile(r"pk_sandbox_[A-Za-z0-9]+|v1,[A-Za-z0-9+/=]{40,}")


def difference(recorded: Trace, replayed: Trace, *, other_secret: bool, other_file: bool, is_running: bool) -> str:
    """What differs between two answers, as a diff; empty where nothing does.

    `other_secret`: keys and signatures that the server's secret makes are others, and are left out too.
    `other_file`: where the scenario's file is, which controls show, is left out as well.
    A clock that `is_running` goes on while a request is served: what controls show of it is the machine's.
    """
    skipped = _MACHINES | ({"scenario"} if other_file else set()) | (_RUNNING if is_running else set())
    before, after = _lines(_less_secrets(recorded, replayed), skipped), _lines(replayed, skipped)
    if other_secret:
        before, after = ([_DERIVED.sub("[derived]", line) for line in lines] for lines in (before, after))
    if before == after:  # which comparing line by line may take long to see
        return ""
    return "\n".join(unified_diff(before, after, "recorded", "replayed", lineterm="", n=2))


def _lines(request: Trace, skipped: frozenset[str]) -> list[str]:
    """An answer line by line, JSON indented."""
    answer, control = (request.answer or b"").decode("latin-1"), request.is_control
    parsed = json_of(request)
    if control and parsed is not None:
        parsed = _without(parsed, skipped)
    headers = [(name, value) for name, value in request.answer_headers if name not in _NOT_COMPARED]
    if control and "now" in skipped:
        headers = [(name, value) for name, value in headers if name != "x-sandbox-now"]
    if REDACTED in answer or control:  # the length of a secret does not matter
        headers = [(name, value) for name, value in headers if name != "content-length"]
    step = "none" if request.after is None else f"{request.before} to {request.after}"
    lines = [f"status {request.status}", f"steps {step}"]
    lines += [f"{name}: {value}" for name, value in sorted(headers)]
    shown = answer if parsed is None else json.dumps(parsed, indent=2, ensure_ascii=False)
    return lines + shown.splitlines()


def _with_answer(request: Trace, value: Any) -> Trace:
    other = copy(request)
    other.answer = orjson.dumps(value)
    return other


def _less_secrets(recorded: Trace, replayed: Trace) -> Trace:
    """The recorded request without what its answer repeats of secrets: the replayed one was not sent them."""
    if REDACTED.encode() not in (replayed.answer or b""):
        return recorded
    before, after = json_of(recorded), json_of(replayed)
    return recorded if before is None or after is None else _with_answer(recorded, _left_out(before, after))


def _left_out(before: Any, after: Any) -> Any:
    """A value, with what another one leaves out left out."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {name: _left_out(member, after.get(name)) for name, member in before.items()}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [_left_out(*pair) for pair in zip(before, after, strict=True)]
    if isinstance(before, str) and isinstance(after, str) and REDACTED in after:
        first, *_, last = after.split(REDACTED)
        return after if before.startswith(first) and before.endswith(last) else before
    return before


def _without(node: Any, skipped: frozenset[str]) -> Any:
    if isinstance(node, dict):
        return {
            name: "[the machine's]" if name in skipped else _without(member, skipped) for name, member in node.items()
        }
    return [_without(item, skipped) for item in node] if isinstance(node, list) else node
