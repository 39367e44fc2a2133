"""What `requests` asks a running server, and how it tells people what the journal holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from .options import json_text, printable
from .server import Refused, RunningServer

HAR = "application/har+json"
LAST = "last"
WARNINGS = {
    "unknown_path": "no operation has a path like the one that is asked for; it has neither query nor sandbox.",
    "unknown_method": "no operation of this path has the method that is asked for.",
    "unknown_code": "the contract has no such error code; a fault rule may have one of its own.",
    "path_as_name": 'a member of a body is called like its path ($.a.b): write it nested, as {"a": {"b": …}}.',
    "oldest_requests_forgotten": "the journal has let requests go (--journal): those are not counted.",
}
_PAGE = 100
_LONGEST = 60  # characters of a path in a list

Body = dict[str, Any]


async def listed(server: RunningServer, query: Mapping[str, Any], limit: int) -> Body:
    """The newest requests that a query means, at most `limit`."""
    found: dict[str, Body] = {}  # by id: requests that come meanwhile move others to the next page
    size = min(limit, _PAGE)
    page = 1
    while True:
        answer = await server.control("GET", "/requests", params={**query, "limit": size, "page": page})
        found |= {request["id"]: request for request in answer["requests"]}
        if len(found) >= limit or not answer["pagination"]["has_next"]:
            return {"requests": list(found.values())[:limit]}
        page += 1


async def shown(server: RunningServer, ident: str) -> Body | None:
    """One request whole, as `request`; None where the last one is meant and there is none."""
    if ident == LAST:
        newest = (await listed(server, {}, 1))["requests"]
        if not newest:
            return None
        ident = newest[0]["id"]
    found: Body = await server.control("GET", f"/requests/{quote(ident, safe='')}")
    return found


async def verified(server: RunningServer, expected: Body) -> Body:
    """The report about what was expected, whether it holds or not."""
    try:
        report: Body = await server.control("POST", "/requests/verify", json=expected)
    except Refused as error:
        if error.code != "verification_failed":
            raise
        report = error.body
    return report


# -- for people


def told_list(found: Body) -> str:
    """A line for each request."""
    rows = [("ID", "AT", "METHOD", "STATUS", "PATH", "OPERATION", "CODE")]
    rows += [
        (
            r["id"],
            r["at"],
            printable(r["method"]),
            _status(r),
            _cut(printable(r["path"])),
            r["operationId"] or "-",
            printable(r["code"] or "-"),
        )
        for r in found["requests"]
    ]
    if len(rows) == 1:
        return "No matching requests."
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def told(request: Body, where: str) -> str:
    """A request with its answer and what it did; `where` are the options of its sandbox."""
    target = request["path"] + (f"?{request['query']}" if request["query"] else "")
    caller = request["caller"]
    lines = [
        printable(f"{request['method']} {target}"),
        f"answered  {_status(request)} {printable(request['code'] or '')}".rstrip(),
        f"id        {request['id']}",
        f"at        {request['at']}, received {request['received_at']}, {request['duration_us']} µs",
        f"caller    {'nobody' if caller is None else printable(caller['kind'] + ' ' + caller['subject'])}",
        "stages    " + ", ".join(f"{stage['step']} {stage['outcome']}" for stage in request["trace"]),
    ]
    lines += [f"step      {request['step']}"] if request["step"] is not None else []
    lines += [f"simulated {printable(request['simulated'])}"] if request["simulated"] else []
    for label, ids in (("events", request["events"]), ("deliver.", request["deliveries"])):
        lines += [f"{label:<9} {', '.join(ids)}"] if ids else []
    lines += [f"warning   {printable(warning)}" for warning in request["warnings"]]
    for part in ("request", "response"):
        lines += ["", part]
        lines += [f"  {printable(name)}: {printable(value)}" for name, value in request[part]["headers"].items()]
        if request[part]["body"] is not None:
            text = json_text(request[part]["body"], indent=2)
            lines += ["", *["  " + line for line in text.split("\n")]]
    if request["explanation"] is not None:
        lines += ["", printable(request["explanation"]["summary"])]
        lines += [f"`stub-server explain {request['id']}{where}` tells more."]
    lines += ["", request["curl"]] if request["curl"] is not None else []
    return "\n".join(lines)


def told_report(report: Body) -> str:
    """Whether it holds, and the nearest misses where it does not."""
    ((how, number),) = report["expected"].items()
    count = f"{report['matched']} {'request matches' if report['matched'] == 1 else 'requests match'}"
    head = "It holds" if report["ok"] else "It does not hold"
    lines = [f"{head}: {count}, expected {'are' if number != 1 else 'is'} {how.replace('_', ' ')} {number}."]
    lines += map(printable, report["unknown"])
    for miss in report["nearest"]:
        lines.append(f"nearest   {miss['id']}")
        for difference in miss["differences"]:
            wanted = json_text(difference["expected"])
            was = f"was {json_text(difference['actual'])}" if "actual" in difference else "was absent"
            lines.append(printable(f"          {difference['where']}: expected {wanted}, {was}"))
    return "\n".join(lines)


def _status(request: Body) -> str:
    return "-" if request["status"] is None else str(request["status"])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
