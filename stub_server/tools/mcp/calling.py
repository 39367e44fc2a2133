"""The tools `start` and `call_api`: what to call the API with, and calls of it."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl

from ...contract.source import METHODS
from ...core.text import nearest
from .session import Answer, Json, Refused, Session, Wrong, path_of_api, segment
from .texts import Result, body_lines, facts_of, happened, opened, refusal

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_KEYS = ("private_key", "signing_key")


async def start(session: Session, sandbox: str | None = None, **beginning: Any) -> Result:
    """Show the sandbox of this session; another one, or a new one, if the arguments name or describe it."""
    if sandbox is not None or beginning or session.sandbox is None:
        await session.enter(sandbox, **beginning)
    found = await session.credentials()
    clock = await session.control("GET", "/clock")
    ids = {name: ident for name, ident in found["sample"].items() if ident}
    lines = [
        f"Sandbox {found['sandbox']} of the merchant {found['merchant']['name']}; its clock shows {clock['now']}.",
        f"Base URL: {found['base_url']}",
        f"Authorization: Bearer {found['jwt']}",
        "Ids to use: " + ", ".join(f"{name} {ident}" for name, ident in ids.items()),
        *(f"{what}: {secret}" for what, secret in session.secrets.items()),
    ]
    for name in ("projects", "plans", "customers", "orders", "subscriptions"):
        total = opened(await session.read(f"/v2/{name}", limit=1))["pagination"]["total"]
        lines[0] += f" {total:,} {name}."
    lines += ["Try:", f"1. call_api {json.dumps(await _order(session, ids), ensure_ascii=False)}"]
    lines += ["2. orders {action: pay}", "3. webhooks {action: inbox}, another order, webhooks {action: messages}"]
    facts = {"sandbox": found["sandbox"], "base_url": found["base_url"], "token": found["jwt"], "ids": ids}
    return Result(lines, facts, "call_api, search_docs, webhooks", has_secrets=True)


async def _order(session: Session, ids: Json) -> Json:
    """The arguments of an order that works, if a plan is sold."""
    if "planId" not in ids:
        return {"operation": "listPlans"}
    plan = (await session.read(f"/v2/plans/{ids['planId']}"))["plan"]
    body = {
        "projectId": plan["projectId"],
        "planId": plan["id"],
        "totalAmount": plan["amount"],
        "items": [{"description": plan["name"], "quantity": 1, "amount": plan["amount"]}],
        "customer": {"name": "Ana Lima", "email": "ana.lima@example.com", "document": "52998224725"},
    }
    return {"operation": "createPixOrder", "body": body}


async def call_api(
    session: Session, operation: str = "", path: str = "", params: Json | None = None, full: bool = False, **parts: Any
) -> Result:
    """Send a request to the API as the seeded merchant, or as somebody else."""
    method = str(parts.get("method", "GET")).upper()
    if operation:
        method, path = await _place(session, operation, params or {})
    path, _, query = path.partition("?")
    answer = await session.api(
        method,
        path_of_api(path),
        query={**dict(parse_qsl(query)), **parts.get("query", {})},
        body=parts.get("body"),
        headers={name.lower(): str(value) for name, value in parts.get("headers", {}).items()},
        bearer=await _bearer(session, parts.get("as")),
    )
    return await answered(session, answer, method, full=full)


async def answered(session: Session, answer: Answer, method: str, *, full: bool = False) -> Result:
    """What the API answered, and what it changed."""
    if answer.is_refused:
        return await refused(session, answer)
    lines = [f"{answer.status}, request {answer.request_id}"]
    if "x-sandbox-warnings" in answer.headers:
        lines.append(f"Warnings: {answer.headers['x-sandbox-warnings']}")
    lines += [json.dumps(answer.json, indent=1, ensure_ascii=False)] if full else body_lines(answer.json)
    if method != "GET":
        lines += await what_happened(session, answer)
        _keep_secrets(session, answer.json)
    following = "orders {action: pay}, call_api, history {action: undo}"
    return Result(lines, {"http_status": answer.status, **facts_of(answer.json)}, following, may_be_long=full)


async def _place(session: Session, name: str, params: Json) -> tuple[str, str]:
    """The method and path of an operation, with its ids. Raises Wrong."""
    paths = (await session.page("/openapi.json", "application/json")).json["paths"]
    known = {
        item[method]["operationId"]: (method.upper(), path)
        for path, item in paths.items()
        for method in METHODS & item.keys()
    }
    if name not in known:
        guess = nearest(name, list(known))
        raise Wrong(
            f"There is no operation {name[:60]}. {f'Did you mean {guess}?' if guess else 'search_docs finds it.'}"
        )
    method, path = known[name]
    for each in _PLACEHOLDER.findall(path):
        if each not in params:
            raise Wrong(f"{name} is {method} {path}: give params, such as {{{each}: ID}}.")
        path = path.replace(f"{{{each}}}", segment(params[each]))
    return method, path


async def _bearer(session: Session, who: str | None) -> str | None:
    """The credential of `as`: None for the ready token, empty for none."""
    if who is None or who == "none":
        return None if who is None else ""
    if who == "key":
        return str((await session.credentials())["private_key"])
    return str((await session.control("POST", "/tokens", {"scopes": who.replace(",", " ").split()}))["token"])


def _keep_secrets(session: Session, body: Any) -> None:
    """Remember new keys, which `start` shows."""
    for record in body.values() if isinstance(body, dict) else ():
        for name in _KEYS:
            if isinstance(record, dict) and name in record:
                session.keep_secret(f"{name} of {record['id']}", record[name])


async def what_happened(session: Session, answer: Answer) -> list[str]:
    """What the steps of a request created and raised."""
    found = await session.control("GET", "/steps", cause=answer.request_id)
    return happened(reversed(found["steps"]))


async def refused(session: Session, answer: Answer) -> Result:
    """A refusal with the explanation that the journal has of it."""
    explanation = None
    if session.sandbox is not None and answer.request_id:
        try:
            found = await session.control("GET", f"/requests/{answer.request_id}")
            explanation = found["request"]["explanation"]
        except Refused:
            pass  # the journal keeps no request that only reads the controls
    return refusal(answer, explanation)
