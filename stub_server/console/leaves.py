"""Pages of the contract as Markdown: an operation, an error code, an event. Each is short enough for a program to read.

What does not fit is left out from the end of its importance: first the members of long bodies, then examples.
"""

import json
import re
from collections.abc import Iterator, Mapping
from http.client import responses
from shlex import quote
from typing import Any

from ..contract.document import JSON, Document, Operation
from ..contract.source import Json
from ..server.request import CONTROL
from .attempt import Attempt
from .fields import Row, rows
from .guide.guide import Entry
from .sheet import Part, Sheet

MOST = 4_800
"""Bytes of a page: some 1,200 tokens."""
_DEPTHS = (9, 2, 1)  # levels of members that are listed, fewer where a page would be too long
_LISTED = 20  # values of a member
_LONGEST = 64  # characters of a text in an example of an answer
_SENTENCE = re.compile(r"(?<=[.!?])\s")
_NOISE = ("without the character NUL", "printable ASCII without spaces")
_SAID_ONCE = frozenset(("X-Sandbox-Admin-Key", "X-Sandbox-Control-Key"))
_ANYWHERE = frozenset(
    (
        "validation_error", "malformed_json", "unsupported_media_type", "payload_too_large", "missing_credentials",
        "invalid_token", "token_expired", "api_key_inactive", "api_key_expired", "ip_not_allowed",
        "admin_key_required", "insufficient_scope",
    )
)  # fmt: skip
"""Codes that nearly every operation may answer. A page lists them last, by name alone."""


class Leaves:
    """The pages of two contracts. `codes` are the error codes with what the contract says of each.

    `every` are the operations of both, with what stands before their paths.
    """

    def __init__(self, api: Document, control: Document) -> None:
        self._api, self._control = api, control
        schema = api.schema("ErrorCode")
        rules = schema.get("x-rules", {})
        self.codes: dict[str, Json] = {code: rules.get(code, {}) for code in schema["enum"]}
        self.every: list[tuple[str, Operation]] = [
            *(("", each) for each in api.operations.values()),
            *((CONTROL, each) for each in control.operations.values()),
        ]

    def entries(self) -> Iterator[Entry]:
        """Every operation, error code and event, as a search finds it."""
        for base, each in self.every:
            kind, summary = "Control" if base else "Operation", each.raw.get("summary", "")
            members = rows(self._control if base else self._api, each.body or {})
            named = " ".join(dict.fromkeys(row.name for row in members))
            text = f"{each.method} {base}{each.path} {_line(each.raw.get('description', ''))} {named}"
            yield Entry(each.id, f"{kind}: {summary}", text, summary)
        for code, rule in self.codes.items():
            yield Entry(code, "Error code", f"{rule.get('text', '')} {rule.get('do', '')}")
        for name, event in self._api.events.items():
            yield Entry(name, "Event", _line(event["description"] or event["summary"]))

    def text(self, name: str) -> str | None:
        """The page of an error code or an event; None for another name."""
        if name in self.codes:
            return self._code(name)
        if name in self._api.events:
            return self._event(name)
        return None

    def statuses(self, code: str) -> list[int]:
        """The statuses that a code comes with."""
        found = {status for _, each in self.every for status, answer in each.responses.items() if code in answer.codes}
        alone = self.codes[code].get("status")
        return sorted(found | ({alone} if alone else set()))

    def _code(self, code: str) -> str:
        rule = self.codes[code]
        where = [each.id for _, each in self.every if any(code in answer.codes for answer in each.responses.values())]
        statuses = " or ".join(f"{status} {responses.get(status, '')}" for status in self.statuses(code))
        parts = [
            f"# {code}",
            f"Error code, status {statuses or 'of the fault'}. {rule.get('text', '')}".strip(),
            f"**What to do:** {rule['do']}" if "do" in rule else "",
            f"Answered by {_some(where)}." if where else "Any path may answer it.",
            *map(_block, self._examples(code)),
        ]
        return _joined(parts)

    def _examples(self, code: str) -> list[Any]:
        """The first refusal of this code that the contracts show."""
        for document in (self._api, self._control):
            for example in document.raw["components"].get("examples", {}).values():
                value = example.get("value")
                if isinstance(value, dict) and value.get("error") is True and value.get("code") == code:
                    return [value]
        return []

    def _event(self, name: str) -> str:
        event = self._api.events[name]
        by = ["the clock" if each == "clock" else f"`{each}`" for each in event["emitted_by"]]
        parts = [
            f"# {name}",
            f"Event. {_line(event['description'] or event['summary'])}",
            f"Raised by {', '.join(by)}." if by else "",
            "A webhook that subscribes to it gets a POST with this body, signed as `/guide/webhooks.md` says:",
        ]
        whole = _joined([*parts, _block(event["example"])])
        return whole if len(whole.encode()) <= MOST else _joined([*parts, _block(_short(event["example"]))])


def operation_text(sheet: Sheet, events: Mapping[str, Json]) -> str:
    """The page of an operation or control: parameters, body, an example, errors and events."""
    for depth in _DEPTHS:
        for shows_answer in (True, False):
            for is_short in (False, True):
                found = _joined(_parts(sheet, events, depth, shows_answer=shows_answer, is_short=is_short))
                if len(found.encode()) <= MOST:
                    return found
    return found


def _parts(
    sheet: Sheet, events: Mapping[str, Json], depth: int, *, shows_answer: bool, is_short: bool
) -> Iterator[str]:
    operation = sheet.operation
    yield f"# {operation.id}: {operation.raw.get('summary', '')}"
    yield f"`{operation.method} {sheet.path}` at `{sheet.url}`. {_credential(operation, sheet)}"
    yield _line(operation.raw.get("description", ""))
    rows = [(place, row) for place, found in sheet.parameters for row in found if row.name not in _SAID_ONCE]
    if rows:
        yield "## Parameters"
        yield "\n".join(_member(row, place, is_short=is_short) for place, row in rows)
    for part in sheet.request:
        yield f"## Body{'' if part.media == JSON else f' ({part.media})'}"
        yield "\n".join(_members(part, depth, is_short=is_short))
    yield "## Example"
    yield f"```sh\n{_command(sheet)}\n```"
    yield from _success(sheet, shows_answer=shows_answer)
    yield from _errors(operation)
    if operation.emits:
        yield "## Events"
        yield ", ".join(f"`{name}`" for name in operation.emits if name in events)


def _credential(operation: Operation, sheet: Sheet) -> str:
    if operation.scheme is None:
        return "No credential on this machine." if sheet.base else "No credential."
    scopes = ", ".join(f"`{scope}`" for scope in sorted(operation.scopes))
    kind = "JWT (no API key)" if operation.scheme == "jwt" else "token or private key"
    return f"Bearer: a {kind}{f' with scope {scopes}' if scopes else ''}."


def _members(part: Part, depth: int, *, is_short: bool) -> Iterator[str]:
    if not part.fields:
        yield _line(part.whole.description) or f"{part.whole.type}."
    shown = [row for row in part.fields if row.above.count(".") < depth]
    yield from (_member(row, "", is_short=is_short) for row in shown)
    if len(shown) < len(part.fields):
        yield f"- … {len(part.fields) - len(shown)} members inside these: the contract has them."


def _member(row: Row, place: str, *, is_short: bool) -> str:
    limits = [limit for limit in row.limits if not limit.endswith(_NOISE)]
    text = _line(row.description)
    if is_short:
        limits = limits if row.required else []
        text = _SENTENCE.split(text)[0] if not row.allowed else ""
    facts = ["required" if row.required else "", place, row.type, *limits]
    if row.allowed:
        more = ", …" if len(row.allowed) > _LISTED else ""
        text += f" One of {', '.join(f'`{value}`' for value in row.allowed[:_LISTED])}{more}."
    if row.default is not None:
        text += f" Default `{row.default}`."
    head = f"- `{row.above}{row.name}` ({'; '.join(filter(None, facts))})"
    return f"{head}: {text.strip()}" if text.strip() else head


def _command(sheet: Sheet) -> str:
    """The call, with the token in a variable."""
    curl = Attempt(sheet).curl.replace(" -g --path-as-is", "").replace("'Authorization: Bearer TOKEN'", "$AUTH")
    body = sheet.body
    if body and quote(body) in curl:
        curl = curl.replace(quote(body), quote(_compact(json.loads(body))))
    return curl.replace("$AUTH", '"Authorization: Bearer $TOKEN"').replace("--data-raw", "-d")


def _success(sheet: Sheet, *, shows_answer: bool) -> Iterator[str]:
    for answer in sheet.answers:
        if answer.status >= 300:
            continue
        examples = [example for part in answer.parts if part.media == JSON for example in part.examples]
        yield f"Answers {answer.status}: {_SENTENCE.split(_line(answer.description))[0]}"
        shown = json.loads(examples[0].text) if examples else None
        if shown is not None and shows_answer:
            yield _block(_short(shown))
        elif isinstance(shown, dict):
            yield f"It has {', '.join(f'`{name}`' for name in shown)}."


def _errors(operation: Operation) -> Iterator[str]:
    """The codes by status. Of those that every operation may answer only the statuses are named."""
    lines, usual = [], []
    for status, answer in sorted(operation.responses.items()):
        own = [code for code in answer.codes if code not in _ANYWHERE]
        if own:
            lines.append(f"- {status}: {', '.join(f'`{code}`' for code in own)}")
        if len(own) < len(answer.codes):
            usual.append(str(status))
    if usual:
        lines.append(f"- {', '.join(usual)}: as everywhere, for credentials and what does not fit")
    if lines:
        yield "## Errors"
        yield "\n".join(lines)
        yield "Each code has a page, `/docs/CODE.md`."


def _some(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"


def _short(value: Any) -> Any:
    """An example with the first entry of each list, and long texts cut."""
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value[:1]] + (["…"] if len(value) > 1 else [])
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}…"
    return value


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _block(value: Any) -> str:
    return f"```json\n{_compact(value)}\n```"


def _line(text: str) -> str:
    return " ".join(text.split())


def _joined(parts: Any) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
