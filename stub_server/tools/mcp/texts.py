"""What tools answer: short texts with the names that the API uses, and what may come next."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import orjson

from ...contract.redaction import Redactor
from ...core.members import given
from ...core.record import Body
from ...core.text import shortened

_MOST_SEARCHED = 256 * 1024  # characters of a line
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
    facts: Body = field(default_factory=dict)
    next: str = ""
    is_error: bool = False
    may_be_long: bool = False
    has_secrets: bool = False

    @property
    def text(self) -> str:
        """The whole text; one that is too long is cut, and secrets are shown to those alone who
        asked for them.
        """
        # a text is searched for secrets as a whole, and others wait
        lines = [line[:_MOST_SEARCHED] for line in self.lines]
        if lines != self.lines:
            lines.append("… cut here: ask for less.")
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
        first = value[0] if isinstance(value, list) else value
        if is_record or not isinstance(first, dict):
            lines.append(f"{name}: {_in_one_line(value)}")
        elif first is value:
            lines.append(f"{name}:")
            lines += [f"  {line}" for line in body_lines(value)]
        else:
            total = body.get("pagination", {}).get("total", len(value))
            lines.append(f"{name}, {min(most, len(value))} of {total:,}:")
            lines += [f"- {_in_one_line(each, _LONGEST_ROW)}" for each in value[:most]]
    return lines


def opened(body: Body) -> Body:
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


def facts_of(body: Body) -> Body:
    """The ids and states of what an answer has: its own, those of the records in it, and of the
    first of its lists.
    """
    found: Body = _facts(body)
    for name, value in opened(body).items():
        if isinstance(value, dict):
            found[name] = _facts(value)
        elif isinstance(value, list):
            found[name] = [_facts(each) for each in value[:LISTED] if isinstance(each, dict)]
    return {name: value for name, value in found.items() if value not in _NOTHING}


def _facts(record: Body) -> Body:
    """The members of a record that a program goes on with."""
    found = {}
    for name, value in record.items():
        if name in _FACTS and value is not None:
            found[name] = _hidden(value) if isinstance(value, str) else value
    return found


# -- refusals


def refusal(said: Body, explanation: Body | None) -> Result:
    """A refusal by its body, with its reason, and with the calls that work."""
    found = explanation or {"nearest": None}
    reasons = {"rule": found.get("rule"), "state": found.get("state")}
    result = Result(
        [*body_lines(said, _VIOLATIONS), *body_lines(reasons)],
        _facts(said),
        f"read_docs {{page: {said.get('code')}}}",
        is_error=True,
    )
    nearest = found["nearest"]
    if nearest is None:
        return result
    calls = list(map(_arguments, nearest["calls"]))
    shown = [f"call_api {orjson.dumps(call).decode()}" for call in calls]
    result.lines.append("This works now; it was tried on a copy of the sandbox:")
    if sum(map(len, shown)) > _LARGEST_CALLS:
        for change in nearest["changes"]:
            result.lines.append(f"- {change['where']}: {_in_one_line(change['to'])}")
        result.next = "call_api with that"
        return result
    result.lines += shown
    result.next = "call_api as shown"
    if list(map(_hidden, shown)) == shown:
        result.facts["retry"] = {"tool": "call_api", "arguments": calls[-1]}
    return result


def _arguments(call: Body) -> Body:
    """A call as the arguments of call_api."""
    path = call["path"]
    if call["query"]:
        path += f"?{call['query']}"
    headers = {name: value for name, value in call["headers"].items() if name != "content-type"}
    return given(
        method=call["method"], path=path, body=call["body"] or None, headers=headers or None
    )
