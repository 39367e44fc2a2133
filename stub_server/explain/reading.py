"""Guesses what a body that is no JSON was meant to be."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import orjson
import yaml

_LONGEST = 4_096  # bytes that are guessed at: reading them another way is slow
_MEMBERS = 200
_TRAILING = re.compile(r",\s*([}\]])")
_BAD_NUMBERS = re.compile(r"\b(?:NaN|-?Infinity|undefined|None)\b")
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_PYTHON = {"True": "true", "False": "false"}


def guessed(raw: bytes) -> Any | None:
    """A body read as JSON with the usual mistakes, as a form, or as YAML; None where nothing is like it."""
    if len(raw) > _LONGEST:
        return None
    text = raw.decode("utf-8-sig", "replace").replace("\0", "").strip()
    for attempt in (text, _tidied(text), _closed(_tidied(text))):
        try:
            return orjson.loads(attempt)
        except ValueError:
            continue
    return _form(text) or _loose(text)


def _tidied(text: str) -> str:
    """Without commas before a bracket, and with JSON's own words."""
    text = _BAD_NUMBERS.sub("null", _TRAILING.sub(r"\1", text))
    for word, own in _PYTHON.items():
        text = re.sub(rf"\b{word}\b", own, text)
    return text


def _closed(text: str) -> str:
    """With the brackets and the quote that were left open."""
    open_, quoted, escaped = [], False, False
    for character in text:
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = character == "\\", character != '"'
        elif character == '"':
            quoted = True
        elif character in "{[":
            open_.append("}" if character == "{" else "]")
        elif character in "}]" and open_:
            open_.pop()
    return text.rstrip().rstrip(",") + ('"' if quoted else "") + "".join(reversed(open_))


def _form(text: str) -> dict[str, str] | None:
    """What a form would have sent: `name=value&…`."""
    if "=" not in text or text[:1] in "{[":
        return None
    try:
        return dict(parse_qsl(text, max_num_fields=_MEMBERS)) or None
    except ValueError:
        return None


def _loose(text: str) -> Any | None:
    """Objects with names or texts in other quotes, or none."""
    if text[:1] not in ("{", "[") or "&" in text or "*" in text or text.count("[") + text.count("{") > _MEMBERS:
        return None
    try:
        return orjson.loads(orjson.dumps(yaml.load(text, Loader=_LOADER)))  # noqa: S506 (it makes texts alone)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
