"""What tools answer: short texts with the names that the API uses, and what may come next."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import orjson

from ...contract.redaction import Redactor
from ...core.text import shortened
from ...server.layers.inside import Reply
from .session import Json

LISTED = 5  # entries of a list that are shown
_VIOLATIONS = 12
_LARGEST = 5_600  # bytes of a result: about 1,400 tokens
_LARGEST_CALLS = 2_000  # bytes of the calls that a refusal shows ready to send
# characters of a nested value, a nested record, a text
_LONGEST, _LONGEST_LINE, _LONGEST_TEXT = 90, 280, 900
_LONGEST_ROW = 600  # characters of a record in a list
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
_TO_PAY = ("qr_code", "qr_code_url", "line")
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
    """An answer by the names of the API: plain members together, then records and lists, of which
    `most` are shown.
    """
    if body is None:
        return []
    if not isinstance(body, dict):
        return [_line(body)]
    body = opened(body)
    plain, others = list[str](), list[str]()
    for name, value in body.items():
        if value is None or name in ("error", "pagination"):
            continue
        if isinstance(value, (dict, list)):
            others += _nested_lines(body, name, most)
        elif isinstance(value, str) and len(value) > _LONGEST:
            others.append(f"{name}: {_cut(value, _LONGEST_TEXT)}")
        else:
            plain.append(f"{name}: {_flow(value)}")
    if plain:
        others.insert(0, " · ".join(plain))
    return others


def _nested_lines(body: Json, name: str, most: int) -> list[str]:
    """A member that is an object or a list: records line by line, anything else in one line."""
    value = body[name]
    if not value:
        return []
    is_record = "id" in body
    if isinstance(value, dict) and not is_record and ("id" in value or len(body) == 1):
        lines = [f"{name}:"]
        for line in body_lines(value):
            lines.append(f"  {line}")
        return lines
    if isinstance(value, list) and not is_record and isinstance(value[0], dict):
        total = body.get("pagination", {}).get("total", len(value))
        return [f"{name}, {min(most, len(value))} of {total:,}:", *map(_row, value[:most])]
    if not isinstance(value, dict):
        return _lines_of(name, value)
    rest, lines = dict(value), []
    for member in _TO_PAY:
        if member in rest:
            whole = " ".join(str(rest.pop(member)).splitlines())
            lines.append(f"{name}.{member}: {whole}")
    return [f"{name}: {_line(rest)}", *lines]


def _lines_of(name: str, values: list[Any]) -> list[str]:
    """A list of plain values in one line; the rules of a certificate, which say what
    to do, whole.
    """
    if name != "rules":
        return [f"{name}: {_line(values)}"]
    return ["rules:", *(f"- {rule}" for rule in values)]


def opened(body: Json) -> Json:
    """A body whose list is inside `data`, as those that have it beside the message."""
    data = body.get("data")
    if isinstance(data, dict) and "pagination" in data:
        return {"message": body["message"], **data}
    return body


def _row(record: Json) -> str:
    """A record of a list in one line. Of an object in it stands its name, if it has one."""
    shown = {name: _named(value) for name, value in record.items()}
    return f"- {_cut(_flow(shown), _LONGEST_ROW)}"


def _named(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("name", value)
    return value


def _line(value: Any) -> str:
    """A nested value in one line."""
    return _cut(_flow(value), _LONGEST_LINE)


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        members = []
        for name, each in value.items():
            if each not in _NOTHING:
                members.append(f"{name}: {_flow(each)}")
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and not _is_ambiguous(value):
        return _cut(value, _LONGEST)
    return _cut(orjson.dumps(value).decode(), _LONGEST)


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


def refusal(answer: Reply, explanation: Json | None) -> Result:
    """A refusal with its reason, and with the calls that work."""
    said = answer.json or {"message": answer.body.decode("utf-8", "replace")}
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
            lines.append(f"- {change['where']}: {_line(change['to'])}")
        return Result(lines, facts, "call_api with that", is_error=True)
    lines += shown.split("\n")
    if _hidden(shown) == shown:
        facts["retry"] = {"tool": "call_api", "arguments": orjson.loads(calls[-1])}
    return Result(lines, facts, "call_api as shown", is_error=True)


def _arguments(call: Json) -> Json:
    """A call as the arguments of call_api."""
    found: Json = {"method": call["method"], "path": call["path"]}
    headers = dict(call["headers"])
    headers.pop("content-type", None)
    if call["query"]:
        found["query"] = dict(parse_qsl(call["query"]))
    if call["body"]:
        found["body"] = call["body"]
    if headers:
        found["headers"] = headers
    return found
