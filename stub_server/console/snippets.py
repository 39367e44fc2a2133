"""The body of a request in code to copy, Python or TypeScript."""

import json
from pprint import pformat

_BROKEN = 4_096  # characters of a body that is written in lines: each level of it takes its time


def as_code(body: bytes) -> tuple[str, str]:
    """The body as text, and as a value of Python; that is empty for what has none."""
    text = body.decode("utf-8", "replace")
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
