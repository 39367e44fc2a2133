"""The tools that are controls: what payers, banks, time and receivers do, what was done, and going back."""

import re
from typing import Any
from urllib.parse import parse_qsl

from .calling import answered, what_happened
from .session import Answer, Json, Refused, Session, Wrong, segment
from .texts import Result, body_lines, facts_of, refusal

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_DEFAULTS = {"order": "last", "subscription": "last", "inbox": "agent"}
_PATIENCE = 8.0  # seconds that deliveries on their way are waited for
_CHECK = """A receiver checks the signature so (KEY is the signing key, body the bytes as they came):
signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
digest = hmac.new(base64.b64decode(KEY.removeprefix("whsec_")), signed, hashlib.sha256).digest()
is_signed = "v1," + base64.b64encode(digest).decode() in headers["webhook-signature"].split()"""


async def act(session: Session, call: str, following: str, arguments: Json) -> Result:
    """Call a control such as `POST /orders/{order}/pay`: an argument that the path names replaces its placeholder.

    A path of the API is called with the ready token. A GET has the other arguments in its query, another call in its
    body, but for those that stand after its `?`.
    """
    method, _, path = call.partition(" ")
    path, _, query = path.partition("?")
    own = dict(arguments)
    await session.prefix()
    for name in _PLACEHOLDER.findall(path):
        value = session.sandbox if name == "sandbox" else own.pop(name, _DEFAULTS.get(name))
        if value is None:
            raise Wrong(f"Give `{name}` too: {call} needs it.")
        path = path.replace(f"{{{name}}}", await _ident(session, name, str(value)))
    asked = {**dict(parse_qsl(query)), **own}
    if path.startswith("/v2/"):
        result = await answered(session, await session.api(method, path, query=asked), method)
        result.next = following
        return result
    if method == "GET":
        found = await _seen(session, await session.control(method, path, **asked))
        return Result(body_lines(found), facts_of(found), following)
    asked = {name: own.pop(name) for name in query.split("&") if name in own}
    answer = await session.change(path, own or None, method, **asked)
    found = await _seen(session, answer.json)
    lines = [*await what_happened(session, answer), *body_lines(found)]
    return Result(lines or ["Done."], facts_of(found), following)


async def _ident(session: Session, name: str, given: str) -> str:
    """A segment of the path: of `last` the id of the newest order or subscription, of a code that of its record."""
    if name not in ("order", "subscription") or (given != "last" and "-" in given):
        return segment(given)
    records = (await session.read(f"/v2/{name}s", search=None if given == "last" else given))[f"{name}s"]
    for each in records:
        if given in ("last", each["code"]):
            return str(each["id"])
    raise Wrong(f"There is no {name} {given[:40]}. call_api {{operation: list{name.title()}s}} lists them.")


async def _seen(session: Session, found: Any) -> Any:
    """What a control answered: an order with its subscription, and of jobs of the clock those that raised events."""
    found = found or {}
    if found.get("subscriptionId"):
        (subscription,) = (await session.read("/v2/subscriptions", id=found["subscriptionId"]))["subscriptions"]
        found = found | {"subscription": subscription}
    if "fired" in found:
        found = found | {"fired": [job for job in found["fired"] if job["events"]]}
    return found


# -- what takes more than one call, or none of its own


async def freeze(session: Session) -> Result:
    """Stop the clock."""
    return await act(session, "PATCH /clock", "clock {action: run}", {"frozen": True})


async def run(session: Session) -> Result:
    """Let the clock run."""
    return await act(session, "PATCH /clock", "clock {action: freeze}", {"frozen": False})


async def open_inbox(session: Session, inbox: str = "agent", event_type: str = "*") -> Result:
    """Make a webhook whose receiver is an inbox of the sandbox."""
    base = (await session.credentials())["base_url"].partition("/s/")[0]
    url = f"{base}/s/{session.sandbox}/_sandbox/inbox/{segment(inbox)}"
    made = await answered(
        session, await session.api("POST", "/v2/webhooks", body={"url": url, "events": [event_type]}), "POST"
    )
    if not made.is_error:
        made.next = "call_api and orders raise events, webhooks {action: wait} reads them"
        made.lines += ["It is an inbox: webhooks {action: messages} reads it. start shows its signing key.", _CHECK]
    return made


async def messages(session: Session, inbox: str = "agent", **own: Any) -> Result:
    """The newest messages of an inbox, and the whole of the newest, or of the one that is asked for."""
    path = f"/inbox/{segment(inbox)}"
    found = await session.control("GET", path, limit=5, event_type=own.get("event_type"))
    if not found["messages"]:
        return Result(["There is no such message."], {"messages": 0}, "webhooks {action: inbox}, then an order")
    number = own.get("message", found["messages"][0]["number"])
    whole = await session.control("GET", f"{path}/{number}")
    brief = [{name: each[name] for name in _BRIEF} for each in found["messages"]]
    lines = body_lines(found | {"messages": brief})
    return Result([*lines, *body_lines(whole["message"])], {"messages": brief}, "webhooks {action: deliveries}")


_BRIEF = ("number", "event_type", "event_id", "verified")


async def wait(session: Session, **own: Any) -> Result:
    """Wait for deliveries that are on their way, then read the inbox."""
    await session.change("/webhooks/drain", {"wait_seconds": _PATIENCE})
    return await messages(session, **own)


async def presets(session: Session) -> Result:
    """The predefined fault rules."""
    contract = (await session.page("/_sandbox/openapi.json", "application/json")).json
    known = contract["components"]["schemas"]["FaultPreset"]["x-presets"]
    return Result(body_lines(known), {"presets": list(known)}, "faults {action: add, preset: flaky}")


async def undo(session: Session) -> Result:
    """Go back to before the newest step of a request or a control."""
    for each in (await session.control("GET", "/steps", limit=100))["steps"]:
        if each["cause"]["kind"] in ("request", "control"):
            undone = f"{each['cause']['operation']} of step {each['step']}"
            found = await session.change("/rewind", {"to_step": each["step"] - 1})
            return Result(
                [f"{undone} is undone.", *body_lines(found.json)], {}, "history {action: undo} takes that back"
            )
    raise Wrong("Nothing was changed yet.")


async def export(session: Session) -> Result:
    """How to write the sandbox to a file."""
    await session.prefix()
    return Result([f"stub-server export --sandbox {session.sandbox} --server URL writes it to a file."], {}, "history")


async def list_requests(session: Session, query: Json | None = None) -> Result:
    """The newest requests, the refused ones first."""
    found = await session.control("GET", "/requests", **{"limit": 50, **(query or {})})
    brief = [{name: each[name] for name in ("id", "method", "path", "status", "code")} for each in found["requests"]]
    brief.sort(key=lambda each: (each["status"] or 500) < 400)
    return Result(body_lines(found | {"requests": brief}), {}, "requests {action: explain, request: ID}")


async def show_request(session: Session, request: str = "last", explains: bool = False) -> Result:
    """A request whole, or why it was refused; `last` is the newest, or the newest refusal."""
    if request == "last":
        newest = (await session.control("GET", "/requests", limit=1, status="4xx" if explains else None))["requests"]
        if not newest:
            raise Wrong("There is no such request yet.")
        request = newest[0]["id"]
    found = (await session.control("GET", f"/requests/{segment(request)}"))["request"]
    if not explains or found["explanation"] is None:
        return Result(body_lines(found), facts_of(found), "requests {action: explain}")
    answer = Answer(found["status"], {"x-request-id": request}, found["response"]["body"])
    shown = refusal(answer, found["explanation"])
    return Result([f"{found['method']} {found['path']}", *shown.lines], shown.facts, shown.next)


async def explain(session: Session, request: str = "last") -> Result:
    """Why a request was refused, and the call that works."""
    return await show_request(session, request, explains=True)


async def verify(session: Session, expect: Json | None = None) -> Result:
    """Whether the requests are as expected, with the nearest miss."""
    if not expect:
        raise Wrong('Give `expect`, such as {"request": {"operationId": "createPixOrder"}, "times": {"exactly": 1}}.')
    try:
        found = await session.control("POST", "/requests/verify", expect)
    except Refused as error:
        found = error.answer.json
        if "ok" not in (found or {}):
            raise
    lines = ["Yes." if found["ok"] else "No.", *body_lines(found | {"nearest": found["nearest"][:1]})]
    return Result(lines, facts_of(found), "requests {action: list}")
