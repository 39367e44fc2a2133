"""A request as code to copy: a command for a shell, Python with httpx, TypeScript with fetch."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from ..contract.document import JSON
from ..core.text import SAFE_IN_PATHS
from ..server.curl import command
from ..server.layers.inside import Question
from ..server.request import CONTROL

_ADMIN = "X-Sandbox-Admin-Key"
_VARIABLE = "STUB_ADMIN_KEY"


class Snippet(NamedTuple):
    """Code in one language."""

    language: str
    text: str


def snippets(question: Question, base_url: str, *, has_key: bool) -> list[Snippet]:
    """The code for one request. A key of the controls is read from the environment, where they need one."""
    asked = question._replace(headers={name: value for name, value in question.headers.items() if value})
    needs_key = has_key and question.path.startswith(CONTROL)
    url = base_url + quote(asked.path, safe=SAFE_IN_PATHS) + (f"?{asked.query}" if asked.query else "")
    shell = command(
        asked.method, asked.path, asked.query, asked.headers, asked.body, base_url=base_url, has_admin_key=needs_key
    )
    return [
        Snippet("curl", shell or "A shell command cannot contain this body."),
        Snippet("Python", "\n".join(_python(asked, url, needs_key=needs_key))),
        Snippet("TypeScript", "\n".join(_typescript(asked, url, needs_key=needs_key))),
    ]


def _python(asked: Question, url: str, *, needs_key: bool) -> Iterator[str]:
    text, is_json = _body(asked)
    yield from ("import os", "") if needs_key else ()
    yield from ("import httpx", "", "answer = httpx.request(", f'    "{asked.method}",', f"    {_text(url)},")
    headers = _headers(asked, f'os.environ["{_VARIABLE}"]' if needs_key else "", is_json=is_json)
    if headers:
        yield from ("    headers={", *(f"        {each}," for each in headers), "    },")
    if is_json:
        yield f"    json={_literal(json.loads(text), '    ')},"
    elif text:
        yield f"    content={_text(text)}.encode(),"
    yield from (")", "print(answer.status_code, answer.text)")


def _typescript(asked: Question, url: str, *, needs_key: bool) -> Iterator[str]:
    text, is_json = _body(asked)
    yield from (f"const answer = await fetch({_text(url)}, {{", f'  method: "{asked.method}",')
    headers = _headers(asked, f'process.env.{_VARIABLE} ?? ""' if needs_key else "", is_json=False)
    if headers:
        yield from ("  headers: {", *(f"    {each}," for each in headers), "  },")
    if is_json:
        yield f"  body: JSON.stringify({text.strip()}),".replace("\n", "\n  ")
    elif text:
        yield f"  body: {_text(text)},"
    yield from ("});", "console.log(answer.status, await answer.text());")


def _headers(asked: Question, key: str, *, is_json: bool) -> list[str]:
    """Those to write, with that of the `key`, which is code. httpx names the type of JSON by itself."""
    found = []
    for name, value in asked.headers.items():
        if not (is_json and (name, value) == ("content-type", JSON)):
            title = "-".join(part.capitalize() for part in name.split("-"))
            found.append(f"{_text(title)}: {_text(value)}")
    if key:
        found.append(f'"{_ADMIN}": {key}')
    return found


def _body(asked: Question) -> tuple[str, bool]:
    """The body as text, and whether it can be written as a value of the language."""
    text = asked.body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
        json.dumps(found, allow_nan=False)  # JSON has no such numbers, though Python reads them
        _literal(found, "")
    except (ValueError, RecursionError):
        return text, False
    return text, isinstance(found, dict | list) and "__proto__" not in text


def _literal(value: Any, indent: str) -> str:
    """A value of JSON as Python writes it, a line for each member."""
    inner = f"{indent}    "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{_text(name)}: {_literal(each, inner)}," for name, each in value.items()]
        return "\n".join(("{", *lines, f"{indent}}}"))
    if isinstance(value, list) and value:
        return "\n".join(("[", *(f"{inner}{_literal(each, inner)}," for each in value), f"{indent}]"))
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """A text between quotation marks, as both languages read it."""
    return json.dumps(value, ensure_ascii=not value.isprintable())
