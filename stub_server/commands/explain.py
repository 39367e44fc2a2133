"""The verb `explain`: why a request was refused, and the nearest one that would succeed now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from .options import answer_of, json_text, of_a_server, printable, tell

if TYPE_CHECKING:
    from .server import RunningServer

_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}
LAST = "last"
_LOOKED_AT = 100  # requests, the newest
Shown = dict[str, Any]


@click.command(context_settings=_SETTINGS)
@click.argument("ident", metavar="ID|last")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
def explain(ident: str, server: str, sandbox: str, admin_key: str | None, as_json: bool) -> None:
    """Say why a request was refused, and print the nearest one that succeeds, to be pasted.

    ID is the X-Request-Id of its answer; last is the newest refusal. Exit code 1 when there is no such request, or none
    that succeeds; 2 when the sandbox cannot be asked.
    """
    from urllib.parse import quote

    async def ask(running: RunningServer) -> Shown | None:
        wanted: str | None = ident
        if ident == LAST:
            newest = (await running.control("GET", "/requests", params={"limit": _LOOKED_AT}))["requests"]
            wanted = next((request["id"] for request in newest if (request["status"] or 0) >= 400), None)
        if wanted is None:
            return None
        found: Shown = (await running.control("GET", f"/requests/{quote(wanted, safe='')}"))["request"]
        return found

    request = answer_of(server, sandbox, admin_key, ask)
    if request is None:
        raise click.ClickException(f"none of the newest {_LOOKED_AT} requests was refused.")
    found = request["explanation"]
    tell(found, text(request), as_json=as_json)
    sys.exit(1 if found is not None and found["nearest"] is None else 0)


def text(request: Shown) -> str:
    """An explanation for people."""
    head = f"{request['method']} {request['path']} was answered {request['status']}"
    found = request["explanation"]
    if found is None:
        return printable(f"{head}: it was accepted.")
    lines = [f"{head} {request['code'] or ''}".rstrip() + f" ({request['id']})", found["summary"], ""]
    if found["contract"] is not None:
        lines.append(f"contract  {found['contract']['pointer']}: {found['contract']['excerpt']}")
    if found["rule"] is not None:
        lines.append(f"rule      {found['rule']['text']}")
    if found["state"] is not None:
        state = found["state"]
        lines.append(f"state     {state['resource']} {state['id']}: {state['field']} is {json_text(state['is'])}")
        lines += [f"          {name} {', '.join(map(str, state[name]))}" for name in ("needed", "moves") if state[name]]
    if found["nearest"] is None:
        return "\n".join([*map(printable, lines), "nearest   none was found that succeeds."])
    for number, change in enumerate(found["nearest"]["changes"]):
        was, now = (json_text(change[name]) for name in ("from", "to"))
        arrow = now if change["from"] is None else f"{was} → {now}"
        lines.append(f"{'changes' if number == 0 else '':<9} {change['where']}: {arrow}  ({change['why']})")
    return "\n".join([*map(printable, lines), "", found["nearest"]["curl"]])
