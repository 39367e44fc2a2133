"""A request and the calls before it as commands for a shell, to be pasted."""

from __future__ import annotations

from ..calls.curl import command
from .attempt import Attempt


def curl(attempt: Attempt, base_url: str, *, has_admin_key: bool) -> str | None:
    """The calls before and the request, one command each; None where one of them is none that a shell takes."""
    calls = (*attempt.before, attempt.question)
    commands = [
        command(call.method, call.path, call.query, call.headers, call.body, base_url, has_admin_key=has_admin_key)
        for call in calls
    ]
    told = [text for text in commands if text is not None]
    return " &&\n".join(told) if len(told) == len(calls) else None
