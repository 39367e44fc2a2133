"""The tools that are controls: what payers, banks, time and receivers do, what was done,
and going back.
"""

import json
from typing import Any
from urllib.parse import urlencode

from ...core.record import Body
from ...server.request import CONTROL
from .calling import PLACEHOLDER, answered
from .session import Session, Wrong, segment
from .texts import Result, body_lines, facts_of, refusal

_DEFAULTS = {"order": "last", "subscription": "last", "id": "last"}
_LONGEST_CALL = 300  # characters of the call that a result shows
_PATIENCE = 8.0  # seconds that deliveries on their way are waited for
_CHECK = """It is an inbox: webhooks {action: wait} reads it.
A receiver checks the signature so (KEY is the signing key, body the bytes as they came;
base64, hashlib and hmac are imported):
signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
digest = hmac.new(base64.b64decode(KEY.removeprefix("whsec_")), signed, hashlib.sha256).digest()
is_signed = "v1," + base64.b64encode(digest).decode() in headers["webhook-signature"].split()"""


async def act(session: Session, call: str, following: str, own: Body) -> Result:
    """Make a call such as `POST /orders/{order}/pay`: an argument that the path names replaces its
    placeholder.

    A GET has the other arguments in its query, another call in its body, but for those that stand
    after its `?`.
    """
    await session.prefix()
    method, _, place = call.partition(" ")
    template, _, in_query = place.partition("?")
    path = await _with_ids(session, template, own)
    asked, body = Body(), None
    if method == "GET":
        asked = own
    elif in_query in own:
        asked[in_query] = own.pop(in_query)
    if method in ("POST", "PATCH"):
        body = own
    answer = await session.ask(method, path, body, **asked)
    base = "" if path.startswith("/v2/") else CONTROL
    sent = f"{method} {base}{path}"
    if asked:
        sent += f"?{urlencode(asked)}"
    if body:
        sent += f" {json.dumps(body, ensure_ascii=False)}"
    return await answered(session, sent[:_LONGEST_CALL].rstrip(), answer, following)


async def _with_ids(session: Session, path: str, own: Body) -> str:
    """A path with the arguments that it names, which are taken from `own`. Raises Wrong."""
    defaults = {**_DEFAULTS, "sandbox": session.sandbox}
    for name in PLACEHOLDER.findall(path):
        value = own.pop(name, defaults.get(name))
        if value is None:
            raise Wrong(f"Give `{name}` too: {path} needs it.")
        if name == "id" and value == "last":
            value = await _last_request(session)
        path = path.replace(f"{{{name}}}", segment(value))
    return path


async def _last_request(session: Session, status: str | None = None) -> str:
    for each in (await session.get("/requests", limit=1, status=status))["requests"]:
        return str(each["id"])
    raise Wrong("There is no such request yet. call_api makes one, and so does your program.")


# -- what takes more than one call


async def open_inbox(session: Session, inbox: str = "agent", event_type: str = "*") -> Result:
    """Make a webhook whose receiver is an inbox of the sandbox. Raises Refused."""
    base = (await session.credentials())["base_url"].partition("/s/")[0]
    url = f"{base}/s/{session.sandbox}/_sandbox/inbox/{segment(inbox)}"
    following = "call_api and orders raise events, webhooks {action: wait} reads them"
    made = await act(session, "POST /v2/webhooks", following, {"url": url, "events": [event_type]})
    made.lines.append(_CHECK)
    return made


async def messages(
    session: Session, inbox: str = "agent", message: int | None = None, **own: Any
) -> Result:
    """One message of an inbox, or the newest ones, and the newest of them whole."""
    following = "call_api raises events, webhooks {action: deliveries} shows what was sent"
    if message is not None:
        return await act(session, f"GET /inbox/{{inbox}}/{message}", following, {"inbox": inbox})
    found = await session.get(f"/inbox/{segment(inbox)}", **own)
    lines = ["0 messages yet"]
    if found["messages"]:
        newest = dict(found["messages"][0])
        body = newest.pop("body")  # a signature is of all of its bytes
        lines = [*body_lines(newest), f"body: {body}"]
    return Result([*lines, *body_lines(found)], facts_of(found), following)


async def wait(session: Session, **own: Any) -> Result:
    """Wait for deliveries that are on their way, then read the inbox."""
    await session.ask("POST", "/webhooks/drain", {"wait_seconds": _PATIENCE})
    return await messages(session, **own)


async def certify(session: Session, webhookId: str = "", **own: Any) -> Result:
    """Test the receiver of a webhook. Raises Wrong without its id: the control takes an address
    too, this tool does not.
    """
    if not webhookId:
        raise Wrong("Give webhookId: the id of the webhook that createWebhook made.")
    return await act(
        session,
        "POST /certify",
        "webhooks {action: deliveries}, webhooks {action: messages}",
        {"webhookId": webhookId, **own},
    )


async def undo(session: Session) -> Result:
    """Go back to before the newest step of a request or a control."""
    for each in (await session.get("/steps", limit=100))["steps"]:
        if each["cause"]["kind"] in ("request", "control"):
            result = await act(
                session,
                "POST /rewind",
                "history {action: undo} takes that back too",
                {"to_step": each["step"] - 1},
            )
            result.lines.insert(0, f"{each['cause']['operation']} is undone.")
            return result
    raise Wrong("Nothing was changed yet.")


async def export(session: Session) -> Result:
    """How to write the sandbox to a file."""
    await session.prefix()
    return Result(
        [f"stub-server export --sandbox {session.sandbox} --server URL writes it to a file."],
        {},
        "history",
    )


async def list_requests(session: Session, query: Body | None = None) -> Result:
    """The newest requests, the refused ones first."""
    found = await session.get("/requests", **{"limit": 50, **(query or {})})
    found["requests"].sort(key=lambda each: (each["status"] or 500) < 400)
    lines = body_lines(found) or ["0 requests"]
    return Result(lines, facts_of(found), "requests {action: explain, id: ID}")


async def explain(session: Session, id: str = "last") -> Result:
    """Why a request was refused, and the call that works."""
    if id == "last":
        id = await _last_request(session, "4xx")
    found = (await session.get(f"/requests/{segment(id)}"))["request"]
    shown = refusal(found["response"]["body"] or {}, found["explanation"])
    asked = body_lines(f"{found['method']} {found['path']}")  # a stranger may have sent it
    return Result([*asked, *shown.lines], shown.facts, shown.next)
