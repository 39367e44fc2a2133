"""The error codes: status, meaning, what to do, and an answer as it is sent."""

import re
from typing import Any

import httpx2
import orjson

from ..support.estate import Estate
from ..support.live import FROZEN, NO_TLS, running
from ..support.refusals import CODES, Row, rows_of
from ..support.requests import OPERATIONS
from .contract import API
from .operations import documented
from .writing import codes, json_block, page, table

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
    with running(FROZEN) as live:
        api, control = (httpx2.Client(base_url=live.url + path, verify=NO_TLS) for path in ("", "/_sandbox"))
        asking = Estate(live, "default", "nobody", "", api, control, {})
        sections = [_section(code, asking) for code in CODES]
        asking.close()
    return page(
        "Errors",
        """Every refusal has the same shape; branch on its `code`. [Handle errors](../api.md#handle-errors) says how,
        and `stub-server explain` why one request was refused.""",
        table(
            ("Code", "Status", "What to do"),
            ((f"[`{code}`](#{code})", ", ".join(_statuses(code)), _do(code)) for code in CODES),
        ),
        *sections,
        _OF_REPORTS,
    )


def _section(code: str, asking: Estate) -> str:
    where = list(dict.fromkeys(operation.id for operation, _ in documented(code)))
    row = rows_of(code)[0]
    parts = [f"## {code}", f"Status {' or '.join(_statuses(code))}. {row.means or _rule(code)}"]
    parts.append(f"**What to do:** {_do(code)}")
    if 0 < len(where) <= _MANY:
        parts.append(f"Answered by {codes(where)}.")
    elif where:
        parts.append(f"Answered by {len(where)} operations.")
    if row.examples:
        parts.append(json_block(row.examples[0]))
    elif row.provoke is not None:
        parts.append(json_block(_sent(row, asking)))
    return "\n\n".join(parts)


def _statuses(code: str) -> list[str]:
    return [str(row.status) for row in rows_of(code)]


def _do(code: str) -> str:
    """What to do, by status where a code has several."""
    rows = rows_of(code)
    return rows[0].do if len(rows) == 1 else " ".join(f"{row.status}: {row.do}" for row in rows)


def _rule(code: str) -> str:
    """What a code means, as explanations say it."""
    rule = API.schema("ErrorCode")["x-rules"][code]
    return str(rule["text"]) if rule["kind"] == "fault" else f"Rule: {rule['text']}"


def _sent(row: Row, asking: Estate) -> Any:
    """The body of a refusal that no example of the contract shows."""
    assert row.provoke is not None
    body = row.provoke(asking, OPERATIONS["listPlans"]).content.replace(str(asking.live.port).encode(), b"4600")
    return orjson.loads(re.sub(rb"req_[0-9a-f]+", b"req_01JDM4Z7Q8N3V5X2K9T6B1C0FH", body))
