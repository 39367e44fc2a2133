"""Pages of the contract as Markdown: an operation, an error code, an event. Each is short enough
for a program to read.

What does not fit is left out from the end of its importance: first the members of long bodies, then
examples.
"""

import json
import re
from collections.abc import Iterator
from shlex import quote
from typing import Any

from flask import render_template

from ..contract.document import Document, Operation
from ..contract.source import JsonObject
from ..server.request import CONTROL
from .fields import rows
from .guide.guide import Entry
from .sheet import Sheet

MOST = 4_800
"""Bytes of a page: some 1,200 tokens."""
_LEVELS = 4  # of what a page leaves out: see its template
_LONGEST = 64  # characters of a text in an example of an answer
_SENTENCE = re.compile(r"(?<=[.!?])\s")
_BLANK = re.compile(r"\n{3,}")


class Leaves:
    """The pages of two contracts. `codes` are the error codes with what the contract says of each.

    `every` are the operations of both, with what stands before their paths.
    """

    def __init__(self, api: Document, control: Document) -> None:
        self._api, self._control = api, control
        schema = api.schema("ErrorCode")
        rules = schema.get("x-rules", {})
        self.codes: JsonObject = {code: rules.get(code, {}) for code in schema["enum"]}
        self.every: list[tuple[str, Operation]] = [
            *(("", each) for each in api.operations.values()),
            *((CONTROL, each) for each in control.operations.values()),
        ]

    def entries(self) -> Iterator[Entry]:
        """Every operation, error code and event, as a search finds it."""
        for base, each in self.every:
            kind, raw = "Control" if base else "Operation", each.raw
            members = rows(self._control if base else self._api, each.body or {})
            words = [each.method, base + each.path, line(raw.get("description", ""))]
            words += dict.fromkeys(row.name for row in members)
            summary = raw.get("summary", "")
            yield Entry(each.id, f"{kind}: {summary}", " ".join(words), summary)
        for code, rule in self.codes.items():
            yield Entry(code, "Error code", f"{rule.get('text', '')} {rule.get('do', '')}")
        for name, event in self._api.events.items():
            yield Entry(name, "Event", line(event["description"] or event["summary"]))

    def text(self, name: str) -> str | None:
        """The page of an error code or an event; None for another name."""
        if name in self.codes:
            return _page("code", code=name)
        if name in self._api.events:
            return _page("event", name=name)
        return None

    def answers(self, code: str) -> list[tuple[str, int]]:
        """The operations that answer a code, with the statuses that it comes with."""
        found = []
        for _, each in self.every:
            for status, answer in each.responses.items():
                if code in answer.codes:
                    found.append((each.id, status))
        return found

    def statuses(self, code: str) -> list[int]:
        """The statuses that a code comes with."""
        found = {status for _, status in self.answers(code)}
        alone = self.codes[code].get("status")
        return sorted(found | ({alone} if alone else set()))


def operation_text(sheet: Sheet) -> str:
    """The page of an operation or control: parameters, body, an example, errors and events."""
    return _page("operation", sheet=sheet, command=_command(sheet))


def _command(sheet: Sheet) -> str:
    """The call, with the token in a variable."""
    curl = sheet.code["curl"].replace(" -g --path-as-is", "")
    curl = curl.replace("'Authorization: Bearer TOKEN'", '"Authorization: Bearer $TOKEN"')
    body = sheet.body
    if body and quote(body) in curl:
        curl = curl.replace(quote(body), quote(compact(json.loads(body))))
    return curl.replace("--data-raw", "-d")


def _page(kind: str, **content: Any) -> str:
    """A page without the blank lines of what it does not have, and without what makes it too
    long.
    """
    for level in range(_LEVELS):
        text = render_template(f"pages/{kind}.md", level=level, **content)
        found = _BLANK.sub("\n\n", text).strip() + "\n"
        if len(found.encode()) <= MOST:
            break
    return found


# -- filters of the templates


def shortened(value: Any) -> Any:
    """An example with the first entry of each list, and long texts cut."""
    if isinstance(value, dict):
        return {name: shortened(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shortened(each) for each in value[:1]] + (["…"] if len(value) > 1 else [])
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}…"
    return value


def compact(value: Any) -> str:
    """JSON in one line."""
    return json.dumps(value, ensure_ascii=False)


def line(text: str) -> str:
    """A text in one line."""
    return " ".join(text.split())


def first_sentence(text: str) -> str:
    """The first sentence of a line."""
    return _SENTENCE.split(text)[0]


LEAF_FILTERS = {each.__name__: each for each in (shortened, compact, line, first_sentence)}
