"""What tools answer: short texts with the names that the API uses, and what may come next."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import orjson

from ...contract.redaction import Redactor
from ...core.members import given
from ...core.text import shortened
from .session import Json

LISTED = 5  # entries of a list that are shown
_VIOLATIONS = 12
_LARGEST = 5_600  # bytes of a result: about 1,400 tokens
_LARGEST_CALLS = 2_000  # bytes of the calls that a refusal shows ready to send
# characters of a nested value, a record in a list, a text
_LONGEST_LINE, _LONGEST_ROW, _LONGEST_TEXT = 280, 600, 900
_FACTS = frozenset(
    (
        "id",
        "code",
        "status",
        "request_id",
        "subscriptionId",
        "now",
        "step",
        "ok",
        "passed",
        "number",
        "event_type",
        "verified",
    )
)
"""Members that a program goes on with."""
_TO_PAY = frozenset(("qr_code", "line"))
"""What one pays a PIX charge or a boleto with: never cut."""
_is_ambiguous = re.compile(r"(-?[0-9]+(\.[0-9]+)?|true|false|null)?").fullmatch
"""Texts that would look like other values without their quotes, such as a document."""
_NOTHING: tuple[Any, ...] = (None, {}, [])
_without_secrets = Redactor().text


@dataclass
class Result:
    """A result: lines for reading, facts for a program, which have no keys, and one line that names
    the tools that may come next.
    """

    lines: list[str]
    facts: Json = field(default_factory=dict)
    next: str = ""
    is_error: bool = False
    may_be_long: bool = False
    has_secrets: bool = False

    @property
    def text(self) -> str:
        """The whole text; one that is too long is cut, and secrets are shown to those alone who
        asked for them.
        """
        lines = self.lines
        if not self.has_secrets:
            lines = list(map(_hidden, lines))  # each by itself: one that has a key is left out
        text = "\n".join(lines)
        room = _LARGEST - len(orjson.dumps(self.facts)) - len(self.next.encode())
        if not self.may_be_long and len(text.encode()) > room:
            text = text.encode()[:room].decode("utf-8", "ignore") + " … cut here"
        if self.next:
            text += f"\nNext: {self.next}"
        return text


def _hidden(text: str) -> str:
    """A text without this server's tokens, keys and links of payers, which are known
    by their form.
    """
    return (
        _without_secrets(text.encode("utf-8", "replace").decode("latin-1"))
        .encode("latin-1")
        .decode()
    )


def body_lines(body: Any, most: int = LISTED) -> list[str]:
    """An answer by the names of the API, a line for each member; the records in it line by line,
    of a list `most`.
    """
    if not isinstance(body, dict):
        return [] if body is None else [_in_one_line(body)]
    body, lines = opened(body), list[str]()
    is_record = "id" in body
    for name, value in body.items():
        if value in _NOTHING or name in ("error", "pagination"):
            continue
        if is_record or not _has_members(value):
            lines.append(f"{name}: {_in_one_line(value)}")
        elif isinstance(value, dict):
            lines.append(f"{name}:")
            lines += [f"  {line}" for line in body_lines(value)]
        else:
            total = body.get("pagination", {}).get("total", len(value))
            lines.append(f"{name}, {min(most, len(value))} of {total:,}:")
            lines += [f"- {_in_one_line(each, _LONGEST_ROW)}" for each in value[:most]]
    return lines


def _has_members(value: Any) -> bool:
    """Whether a value is an object, or a list of objects."""
    if isinstance(value, list):
        return isinstance(value[0], dict)
    return isinstance(value, dict)


def opened(body: Json) -> Json:
    """A body whose list is inside `data`, as those that have it beside the message."""
    data = body.get("data")
    if isinstance(data, dict) and "pagination" in data:
        return {"message": body["message"], **data}
    return body


def _in_one_line(value: Any, most: int = _LONGEST_LINE) -> str:
    """A text as it is, another value as JSON without what is empty in it, cut where it is long."""
    if isinstance(value, str) and not _is_ambiguous(value):
        return _cut(value, _LONGEST_TEXT)
    if isinstance(value, dict):
        value = {name: each for name, each in value.items() if each not in _NOTHING}
        if not _TO_PAY.isdisjoint(value):
            most = _LARGEST
    return _cut(json.dumps(value, ensure_ascii=False), most)


def _cut(text: str, most: int) -> str:
    """A text in one line, of at most so many characters."""
    return shortened(" ".join(text[: 2 * most].split()), most)


def facts_of(value: Any, *, is_inside: bool = False) -> Any:
    """The ids and states of what an answer has: its own, those of the records in it, and of the
    first of its lists.
    """
    if isinstance(value, list):
        entries = [facts_of(each, is_inside=True) for each in value[:LISTED]]
        return [each for each in entries if each]
    if isinstance(value, str):
        return _hidden(value)
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in opened(value).items():
        is_holder = not is_inside and isinstance(each, (dict, list))
        if not is_holder and name not in _FACTS:
            continue
        facts = facts_of(each, is_inside=True)
        if facts not in _NOTHING:
            found[name] = facts
    return found


# -- refusals


def refusal(said: Json, explanation: Json | None) -> Result:
    """A refusal by its body, with its reason, and with the calls that work."""
    found = explanation or {"nearest": None}
    lines = [
        *body_lines(said, _VIOLATIONS),
        *body_lines({"rule": found.get("rule"), "state": found.get("state")}),
    ]
    nearest, facts = found["nearest"], facts_of(said | {"details": None})
    if nearest is None:
        return Result(lines, facts, f"read_docs {{page: {said.get('code')}}}", is_error=True)
    calls = [orjson.dumps(_arguments(call)).decode() for call in nearest["calls"]]
    shown = "\n".join(f"call_api {call}" for call in calls)
    lines.append("This works now; it was tried on a copy of the sandbox:")
    if len(shown) > _LARGEST_CALLS:
        for change in nearest["changes"]:
            lines.append(f"- {change['where']}: {_in_one_line(change['to'])}")
        return Result(lines, facts, "call_api with that", is_error=True)
    lines += shown.split("\n")
    if _hidden(shown) == shown:
        facts["retry"] = {"tool": "call_api", "arguments": orjson.loads(calls[-1])}
    return Result(lines, facts, "call_api as shown", is_error=True)


def _arguments(call: Json) -> Json:
    """A call as the arguments of call_api."""
    path = call["path"]
    if call["query"]:
        path += f"?{call['query']}"
    headers = {name: value for name, value in call["headers"].items() if name != "content-type"}
    return given(
        method=call["method"], path=path, body=call["body"] or None, headers=headers or None
    )
