"""The error codes: status, meaning, what to do, and an answer as it is sent."""

import re
from pathlib import Path
from typing import Any

import orjson
import yaml

from stub_server.kernel.problem import Refusal

from ..support.live import FROZEN, running
from ..support.wire import exchange
from .contract import API, CONTROL
from .operations import documented
from .writing import codes, json_block, page, table

TEXTS: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("errors.yaml").read_text(encoding="utf-8"))
_MANY = 6  # operations are named, of more their number
_OF_REPORTS = """\
## verification_failed

Status 409. Too few or too many requests match, or the expectation names an operation that does not exist. The answer is
the report of `verifyRequests`, which has no `error` and no `message`.

**What to do:** Read `nearest`, the requests that match best, each with its differences, and `unknown`, the names that
do not exist. [Was a request sent?](../journal.md#was-a-request-sent-and-how-often) describes expectations.
"""


def refusals() -> str:
    """The page of the error codes."""
    examples = _examples()
    with running(FROZEN) as live:
        for name, each in TEXTS.items():
            if "send" in each:
                examples[name] = _sent(live.port, each["send"])
    statuses = {name: _statuses(name, examples) for name in TEXTS}
    return page(
        "Errors",
        """Every refusal has the same shape; branch on its `code`. [Handle errors](../api.md#handle-errors) says how,
        and `stub-server explain` why one request was refused.""",
        table(
            ("Code", "Status", "What to do"),
            ((f"[`{name}`](#{name})", ", ".join(map(str, statuses[name])), each["do"]) for name, each in TEXTS.items()),
        ),
        *(_section(name, statuses[name], examples.get(name)) for name in TEXTS),
        _OF_REPORTS,
    )


def _section(name: str, statuses: list[int], example: Any) -> str:
    each = TEXTS[name]
    where = list(dict.fromkeys(operation.id for operation, _ in documented(name)))
    parts = [f"## {name}", f"Status {' or '.join(map(str, statuses))}. {each.get('means') or _rule(name)}"]
    parts.append(f"**What to do:** {each['do']}")
    if 0 < len(where) <= _MANY:
        parts.append(f"Answered by {codes(where)}.")
    elif where:
        parts.append(f"Answered by {len(where)} operations.")
    if example is not None:
        parts.append(json_block(example))
    return "\n\n".join(parts)


def _rule(name: str) -> str:
    """What a code means, as explanations say it."""
    rule = API.schema("ErrorCode")["x-rules"][name]
    return str(rule["text"]) if rule["kind"] == "fault" else f"Rule: {rule['text']}"


def _examples() -> dict[str, Any]:
    """The first example of the contract of each code."""
    found: dict[str, Any] = {}
    for document in (API, CONTROL):
        for operation in document.operations.values():
            for node in operation.raw["responses"].values():
                for media in document.resolve(node).get("content", {}).values():
                    for each in media.get("examples", {}).values():
                        value = document.resolve(each).get("value")
                        if isinstance(value, dict) and value.get("error") is True:
                            found.setdefault(value["code"], value)
    return found


def _sent(port: int, request: str) -> Any:
    """The body of the answer to a request, written as a line and headers; `LONG` is a long text."""
    line, _, headers = request.replace("LONG", "x" * 70_000).partition("\n")
    line += " HTTP/1.1"
    if "Host:" not in headers:
        headers = f"Host: 127.0.0.1:{port}\n{headers}".strip()
    text = f"{line}\n{headers}\nConnection: close\n\n".replace("\n", "\r\n")
    body = exchange(port, line.partition(" ")[0], text.encode()).body.replace(str(port).encode(), b"4600")
    return orjson.loads(re.sub(rb"req_[0-9a-f]+", b"req_01JDM4Z7Q8N3V5X2K9T6B1C0FH", body))


def _statuses(name: str, examples: dict[str, Any]) -> list[int]:
    """The statuses that a code comes with."""
    found = {status for _, status in documented(name)} | {each["status"] for each in [examples.get(name)] if each}
    kinds: list[type[Refusal]] = [Refusal, *Refusal.__subclasses__()]
    found |= {int(TEXTS[name]["status"])} if "status" in TEXTS[name] else set()
    return sorted(found or {kind.status for kind in kinds if kind.code == name})
