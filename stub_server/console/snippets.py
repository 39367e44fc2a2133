"""A request as code to copy: a command for a shell, Python with httpx, TypeScript with fetch."""

import json
from pprint import pformat
from typing import NamedTuple
from urllib.parse import quote

from flask import render_template

from ..core.text import SAFE_IN_PATHS
from ..server.curl import command
from ..server.layers.inside import Question
from ..server.request import CONTROL

_BROKEN = 4_096  # characters of a body that is written in lines: each level of it takes its time


class Snippet(NamedTuple):
    """Code in one language."""

    language: str
    text: str


def snippets(question: Question, base_url: str, *, has_key: bool) -> list[Snippet]:
    """The code for one request.

    A key of the controls is read from the environment, where they need one.
    """
    asked = question._replace(
        headers={name: value for name, value in question.headers.items() if value}
    )
    needs_key = has_key and asked.path.startswith(CONTROL)
    shell = command(
        asked.method,
        asked.path,
        asked.query,
        asked.headers,
        asked.body,
        base_url=base_url,
        has_admin_key=needs_key,
    )
    text, literal = _body(asked)
    url = base_url + quote(asked.path, safe=SAFE_IN_PATHS)
    if asked.query:
        url += f"?{asked.query}"
    found = [Snippet("curl", shell or "A shell command cannot contain this body.")]
    for language in ("Python", "TypeScript"):
        code = render_template(
            f"code/{language.lower()}.txt",
            asked=asked,
            url=url,
            needs_key=needs_key,
            text=text,
            literal=literal,
        )
        found.append(Snippet(language, code))
    return found


def _body(asked: Question) -> tuple[str, str]:
    """The body as text, and as a value of Python; that is empty for what has none."""
    text = asked.body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
        json.dumps(found, allow_nan=False)  # JSON has no such numbers, though Python reads them
        literal = pformat(found, sort_dicts=False) if len(text) < _BROKEN else repr(found)
    except (ValueError, RecursionError):
        return text, ""
    is_value = isinstance(found, dict | list) and "__proto__" not in text
    return text, literal if is_value else ""


def quoted(value: str) -> str:
    """A text between quotation marks, as both languages read it."""
    return json.dumps(value, ensure_ascii=not value.isprintable())
