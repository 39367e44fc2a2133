"""A request as commands for a shell, to be pasted."""

from __future__ import annotations

from shlex import quote
from urllib.parse import quote as encoded

from ..http.rehearsal import Question
from .attempt import Attempt

LARGEST = 98_304  # bytes of a body: a shell takes no longer argument than 128 KiB
_NAMES = {"authorization": "Authorization", "content-type": "Content-Type", "idempotency-key": "Idempotency-Key"}


def curl(attempt: Attempt, base_url: str, *, has_admin_key: bool) -> str | None:
    """The calls before and the request, one command each; None for a body that no shell takes.

    A call to the control surface reads the admin key from the environment, where the server has one.
    """
    calls = (*attempt.before, attempt.question)
    if any(len(call.body) > LARGEST for call in calls):
        return None
    return " &&\n".join(_command(call, base_url, has_admin_key=has_admin_key) for call in calls)


def _command(call: Question, base_url: str, *, has_admin_key: bool) -> str:
    url = base_url + encoded(call.path, safe="/:@!$&'()*+,;=~-._") + (f"?{call.query}" if call.query else "")
    words = ["curl -sS -g --path-as-is", "-I" if call.method == "HEAD" else f"-X {quote(call.method)}", quote(url)]
    for name, value in call.headers.items():
        if call.body or name != "content-type":
            words.append(f"-H {quote(f'{_NAMES.get(name, name)}: {value}')}")
    if has_admin_key and call.path.startswith("/_sandbox"):
        words.append('-H "X-Sandbox-Admin-Key: $STUB_ADMIN_KEY"')
    if call.body:
        words.append(f"--data-binary {quote(call.body.decode())}")
    return " ".join(words)
