"""The tools `start` and `call_api`: what to call the API with, and calls of it."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from ...core.members import given
from ...server.layers.inside import Reply
from ...server.request import CONTROL
from .session import Json, Refused, Session, Wrong, path_of_api, segment
from .texts import Result, body_lines, facts_of, refusal

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NAME_OF_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII).fullmatch
_OF_THE_CONNECTION = ("connection", "content-length", "host", "transfer-encoding")
_LISTED = 10  # events
_KEYS = ("private_key", "signing_key")
_NOT_PASSED = ("failed", "unknown")  # results of rules
_is_code = re.compile(r"[0-9A-Za-z]{10}").fullmatch  # of an order


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
    ids = given(**found["sample"])
    order = await _order(session, ids)
    lines = [
        f"Sandbox {found['sandbox']} of the merchant {found['merchant']['name']}, scenario"
        f" {health['scenario']}.",
        f"Its clock shows {health['now']}. Base URL: {found['base_url']}",
        f"Authorization: Bearer {found['jwt']}",
        *_in_python(session, found["base_url"]),
        *body_lines(ids),
        *session.secrets,
        f"Try:\n1. call_api {json.dumps(order, ensure_ascii=False)}",
        (
            "2. orders {action: pay}\n3. webhooks {action: inbox}, another order, webhooks {action:"
            " wait}"
        ),
    ]
    facts = {
        "sandbox": found["sandbox"],
        "base_url": found["base_url"],
        "token": found["jwt"],
        "ids": ids,
    }
    return Result(lines, facts, "call_api, search_docs, webhooks", has_secrets=True)


def _in_python(session: Session, base: str) -> list[str]:
    """How a program gets token and ids, where no key is needed for that."""
    if session.keys:
        return []
    return [
        f"In Python: found = httpx.get('{base}{CONTROL}/credentials').json();"
        " token, plan = found['jwt'], found['sample']['planId']"
    ]


async def _order(session: Session, ids: Json) -> Json:
    """The arguments of an order that works, if a plan is sold."""
    if "planId" not in ids:
        return {"operation": "listPlans"}
    plan = (await session.get(f"/v2/plans/{ids['planId']}"))["plan"]
    body = {
        "projectId": plan["projectId"],
        "planId": plan["id"],
        "totalAmount": plan["amount"],
        "items": [{"description": plan["name"], "quantity": 1, "amount": plan["amount"]}],
        "customer": {
            "name": "Ana Lima",
            "email": "ana.lima@example.com",
            "document": "52998224725",
        },
    }
    return {"operation": "createPixOrder", "body": body}


async def call_api(
    session: Session,
    operation: str = "",
    path: str = "",
    params: Json | None = None,
    full: bool = False,
    **parts: Any,
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
        headers=_headers(parts.get("headers", {})),
        bearer=await _bearer(session, parts.get("as")),
    )
    following = "orders {action: pay}, call_api, history {action: undo}"
    if method == "GET":
        following = "call_api, search_docs"
    return await answered(session, f"{method} {path}", answer, following, full=full)


def _headers(headers: Json) -> dict[str, str]:
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


async def answered(
    session: Session, sent: str, answer: Reply, following: str, *, full: bool = False
) -> Result:
    """What the API or a control answered to what was `sent`, and what that changed.

    Raises Refused.
    """
    if answer.is_refused:
        raise Refused(answer)
    lines = [f"{sent}: {answer.status}, request {answer.request_id}"]
    if "x-sandbox-warnings" in answer.headers:
        lines.append(f"Warnings: {answer.headers['x-sandbox-warnings']}")
    found = answer.json or {}
    try:
        if not sent.startswith("GET "):
            lines += await what_happened(session, answer)
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


async def _completed(session: Session, found: Json) -> Json:
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
        shown: Json = {"certificate": {**certificate, "rules": []}}
        for rule in certificate["rules"]:
            if rule["result"] in _NOT_PASSED:
                said = f"{rule['result']}, as {rule['received']}."
                shown[rule["id"]] = f"{said} {rule['advice'] or ''}".rstrip()
        return shown
    return found


async def _place(session: Session, name: str, params: Json) -> tuple[str, str]:
    """The method and path of an operation, with its ids.

    Raises Wrong, and Refused for an unknown one.
    """
    try:
        method, path = await _described(session, "/openapi.json", name)
    except Refused as unknown:
        await _refuse_control(session, name)
        raise unknown
    for each in _PLACEHOLDER.findall(path):
        if each not in params:
            raise Wrong(f"{name} is {method.upper()} {path}: give params, such as {{{each}: ID}}.")
        value = segment(str(params[each]))
        if each == "orderId" and _is_code(value):
            raise Wrong(
                f"{name} takes an id. orders {{action: show, order: {value}}} takes a code, and"
                " shows the id."
            )
        path = path.replace(f"{{{each}}}", value)
    return method.upper(), path


async def _described(session: Session, document: str, name: str) -> tuple[str, str]:
    """The method and path that a contract has of an operation.

    Raises Refused for an unknown one.
    """
    contract = (await session.page(document, "application/json", operationId=name)).json
    ((path, item),) = contract["paths"].items()
    (method,) = (method for method, operation in item.items() if "operationId" in operation)
    return method, path


async def _refuse_control(session: Session, name: str) -> None:
    """Raises Wrong for the name of a control, which other tools call."""
    with suppress(Refused):
        method, path = await _described(session, f"{CONTROL}/openapi.json", name)
        raise Wrong(
            f"{name} is a control of the sandbox, {method.upper()} {path}, and no operation of the"
            " API. Another tool calls it: orders, subscriptions, clock, customers, webhooks,"
            " faults, history or requests."
        )


async def _bearer(session: Session, who: str | None) -> str | None:
    """The credential of `as`: None for the ready token, empty for none."""
    if who is None:
        return None
    if who == "none":
        return ""
    if who == "key":
        return str((await session.credentials())["private_key"])
    made = await session.ask("POST", "/tokens", {"scopes": who.replace(",", " ").split()})
    return str(made.json["token"])


def _keep_keys(session: Session, body: Json) -> Iterator[str]:
    """Remember new keys; says where they are shown."""
    for record in body.values():
        for name in _KEYS:
            if isinstance(record, dict) and name in record:
                session.secrets.append(f"{name} of {record['id']}: {record[name]}")
                yield f"start shows the {name}."


async def what_happened(session: Session, answer: Reply) -> list[str]:
    """The events that the steps of a request raised."""
    events, deliveries = list[str](), 0
    for step in reversed((await session.get("/steps", cause=answer.request_id))["steps"]):
        events += [event["type"] for event in step["events"]]
        for change in step["changes"]:
            if change["resource"] == "webhook_logs":
                deliveries += 1
    if not events:
        return []
    return [f"Events: {', '.join(events[:_LISTED])}; deliveries to webhooks: {deliveries}."]


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


async def _in_journal(session: Session, answer: Reply) -> Json | None:
    """A request as the journal has it: the newest one without an answer, if none says which it
    is.
    """
    if answer.request_id:
        found: Json = (await session.get(f"/requests/{answer.request_id}"))["request"]
        return found
    for each in (await session.get("/requests", commands="true"))["requests"]:
        if each["status"] is None:
            return dict(each)
    return None
