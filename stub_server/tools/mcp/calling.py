"""The tools `start` and `call_api`: what to call the API with, and calls of it."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from ...core.members import given
from ...core.record import Body
from ...server.layers.inside import Reply
from ...server.request import CONTROL
from .session import Refused, Session, Wrong, path_of_api, segment
from .texts import Result, body_lines, facts_of, refusal

PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NAME_OF_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII).fullmatch
_OF_THE_CONNECTION = ("connection", "content-length", "host", "transfer-encoding")
_LISTED = 10  # events
_ANA = {"name": "Ana Lima", "email": "ana.lima@example.com", "document": "52998224725"}


async def start(session: Session, sandbox: str | None = None, **beginning: Any) -> Result:
    """Show the sandbox of this session; another one, or a new one, if the arguments name or
    describe it.
    """
    if beginning or session.sandbox is None or sandbox not in (None, session.sandbox):
        await session.enter(sandbox, **beginning)
    try:
        found = await session.credentials()
    except Refused as error:
        if error.answer.status != 404:
            raise
        await session.enter(sandbox)  # the sandbox of this session was deleted
        found = await session.credentials()
    health = await session.get("/health")
    ids, base = given(**found["sample"]), found["base_url"]
    order = await _order(session, ids)
    lines = [
        f"Sandbox {found['sandbox']} of the merchant {found['merchant']['name']}, scenario"
        f" {health['scenario']}.",
        f"Its clock shows {health['now']}. Base URL: {base}",
        f"Authorization: Bearer {found['jwt']}",
    ]
    if not session.keys:  # else a program would need one too
        lines.append(
            f"In Python: found = httpx.get('{base}{CONTROL}/credentials').json();"
            " token, plan = found['jwt'], found['sample']['planId']"
        )
    lines += [
        *body_lines(ids),
        *session.secrets,
        f"Try:\n1. call_api {json.dumps(order, ensure_ascii=False)}",
        "2. orders {action: pay}",
        "3. webhooks {action: inbox}, another order, webhooks {action: wait}",
    ]
    facts = {"sandbox": found["sandbox"], "base_url": base, "token": found["jwt"], "ids": ids}
    return Result(lines, facts, "call_api, search_docs, webhooks", has_secrets=True)


async def _order(session: Session, ids: Body) -> Body:
    """The arguments of an order that works, if a plan is sold."""
    if "planId" not in ids:
        return {"operation": "listPlans"}
    plan = (await session.get(f"/v2/plans/{ids['planId']}"))["plan"]
    amount = plan["amount"]
    body = {
        "projectId": plan["projectId"],
        "planId": plan["id"],
        "totalAmount": amount,
        "items": [{"description": plan["name"], "quantity": 1, "amount": amount}],
        "customer": _ANA,
    }
    return {"operation": "createPixOrder", "body": body}


async def call_api(
    session: Session,
    operation: str = "",
    path: str = "",
    params: Body | None = None,
    full: bool = False,
    **parts: Any,
) -> Result:
    """Send a request to the API as the seeded merchant, or as somebody else."""
    method = str(parts.get("method", "GET")).upper()
    if operation:
        method, path = await _place(session, operation, params or {})
    path, _, query = path.partition("?")
    answer = await session.send(
        method,
        path_of_api(path),
        headers=await _credential(session, parts.get("as")) | _headers(parts.get("headers", {})),
        query=dict(parse_qsl(query)) | parts.get("query", {}),
        body=parts.get("body"),
    )
    following = "orders {action: pay}, call_api, history {action: undo}"
    if method == "GET":
        following = "call_api, search_docs"
    return await answered(session, f"{method} {path}", answer, following, full=full)


async def _credential(session: Session, who: str | None) -> dict[str, str]:
    """The header for `as`: nobody's, of the API key or of scopes; without it of the ready token."""
    if who == "none":
        return {}
    if who is None:
        token = await session.token()
    elif who == "key":
        token = (await session.credentials())["private_key"]
    else:
        made = await session.ask("POST", "/tokens", {"scopes": who.replace(",", " ").split()})
        token = made.json["token"]
    return {"authorization": f"Bearer {token}"}


def _headers(headers: Body) -> dict[str, str]:
    """Headers by name in lower case.

    Raises Wrong for those of the connection, and for what cannot be one.
    """
    found = {}
    for written, value in headers.items():
        name, text = written.lower(), str(value)
        is_ours = _NAME_OF_HEADER(name) and name not in _OF_THE_CONNECTION
        if not is_ours or not text.isascii() or not text.isprintable():
            raise Wrong(
                f"call_api cannot send the header {name[:40]!r} with this value. Leave it out."
            )
        found[name] = text
    return found


async def _place(session: Session, name: str, params: Body) -> tuple[str, str]:
    """The method and path of an operation, with its ids.

    Raises Wrong.
    """
    try:
        found = await session.page("/openapi.json", "application/json", operationId=name)
    except Refused as error:
        tools = "orders, subscriptions, clock, webhooks, faults and history"
        said = error.answer.json["message"]
        raise Wrong(f"{said} Controls are called by the tools {tools}.") from None
    ((path, item),) = found.json["paths"].items()
    (method,) = (method for method, operation in item.items() if "operationId" in operation)
    for each in PLACEHOLDER.findall(path):
        if each not in params:
            raise Wrong(f"{name} is {method.upper()} {path}: give params, such as {{{each}: ID}}.")
        path = path.replace(f"{{{each}}}", segment(str(params[each])))
    return method.upper(), path


# -- what was answered


async def answered(
    session: Session, sent: str, answer: Reply, following: str, *, full: bool = False
) -> Result:
    """What the API or a control answered to what was `sent`, and what that changed."""
    lines = [f"{sent}: {answer.status}, request {answer.request_id}"]
    if "x-sandbox-warnings" in answer.headers:
        lines.append(f"Warnings: {answer.headers['x-sandbox-warnings']}")
    found = answer.json or {}
    try:
        if not sent.startswith("GET "):
            lines += await _events(session, answer)
        found = await _completed(session, found)
    except Refused as error:  # what was asked for is done
        lines.append(f"That is done. To read what else belongs to it failed: {error}.")
    found.pop("warning", None)  # that a key is shown this once: `start` shows it
    if full:
        lines.append(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        lines += body_lines(found)
    lines += _keep_keys(session, found)
    return Result(
        lines, {"http_status": answer.status, **facts_of(found)}, following, may_be_long=full
    )


async def _events(session: Session, answer: Reply) -> list[str]:
    """A line about the events that a request raised, if any."""
    steps = (await session.get("/steps", cause=answer.request_id))["steps"]
    events, deliveries = list[str](), 0
    for step in reversed(steps):
        events += [event["type"] for event in step["events"]]
        changed = [change["resource"] for change in step["changes"]]
        deliveries += changed.count("webhook_logs")
    if not events:
        return []
    return [f"Events: {', '.join(events[:_LISTED])}; deliveries to webhooks: {deliveries}."]


async def _completed(session: Session, found: Body) -> Body:
    """An order of a control with its subscription; of jobs those that raised events, of rules those
    not passed.
    """
    if "allowed" in found and found["subscriptionId"]:
        owned = await session.get("/v2/subscriptions", id=found["subscriptionId"])
        return found | {"subscription": owned["subscriptions"][0]}
    if "fired" in found:
        return found | {"fired": [job for job in found["fired"] if job["events"]]}
    if "certificate" in found:
        certificate = found["certificate"]
        shown: Body = {"certificate": certificate | {"rules": []}}
        for rule in certificate["rules"]:
            if rule["result"] in ("failed", "unknown"):
                said = f"{rule['result']}, as {rule['received']}."
                shown[rule["id"]] = f"{said} {rule['advice'] or ''}".rstrip()
        return shown
    return found


def _keep_keys(session: Session, body: Body) -> Iterator[str]:
    """Remember new keys; says where they are shown."""
    for record in body.values():
        for name in ("private_key", "signing_key"):
            if isinstance(record, dict) and name in record:
                session.secrets.append(f"{name} of {record['id']}: {record[name]}")
                yield f"start shows the {name}."


async def refused(session: Session, answer: Reply) -> Result:
    """A refusal with what the journal has of it: its explanation, and whether the request changed
    something.
    """
    request = None
    if session.sandbox is not None:
        with suppress(Refused):
            request = await _in_journal(session, answer)
    said = answer.json or {"message": answer.body.decode("utf-8", "replace")}
    if request is None:
        return refusal(said, None)
    result = refusal(said, request.get("explanation"))
    if request["status"] is None:
        sent = f"{request['method']} {request['path']}, request {request['id']}"
        result.lines = [f"{sent}: no answer arrived ({request['simulated']})."]
        result.next = "requests {action: list}, history {action: steps}"
    if request["step"] is not None:
        result.lines.append(f"It was done: step {request['step']}.")
    elif request["method"] != "GET":
        result.lines.append("Nothing was changed.")
    return result


async def _in_journal(session: Session, answer: Reply) -> Body | None:
    """A request as the journal has it: the newest one without an answer, if none says which it
    is.
    """
    if answer.request_id:
        found: Body = (await session.get(f"/requests/{answer.request_id}"))["request"]
        return found
    newest: list[Body] = (await session.get("/requests", commands="true"))["requests"]
    return next((each for each in newest if each["status"] is None), None)
