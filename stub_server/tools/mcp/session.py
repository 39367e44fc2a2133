"""What the tools of one agent work with: its sandbox, how it asks the server, and keys it was
given.
"""

import json
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlencode

from ...core.members import given
from ...core.record import Body
from ...server.layers.access import CONSOLE
from ...server.layers.inside import Question, Reply
from ...server.protocol import LARGEST_HEAD
from ...server.request import COMMAND, CONTROL

Ask = Callable[[Question], Awaitable[Reply]]
"""Sends a request, whose path has the prefix of the sandbox, to the server, and
returns the answer.
"""
_LIFETIME = 86_400  # seconds after which a sandbox is deleted that was made for an agent
_MOST_SECRETS = 20


class Refused(Exception):
    """The API or a control refused what a tool asked."""

    def __init__(self, answer: Reply) -> None:
        super().__init__(f"refused with {answer.status}")
        self.answer = answer


class Wrong(Exception):
    """A tool was called with arguments that mean nothing. The message says what to send instead."""


class Session:
    """One agent.

    `sandbox` is None until a tool needs one, or names one; `keys` are headers that open the
    controls. What asks the server raises Refused.
    """

    def __init__(self, ask: Ask, keys: Mapping[str, str], sandbox: str | None) -> None:
        self._ask, self.keys, self.sandbox = ask, keys, sandbox
        self.opened_in = sandbox
        """The sandbox whose address or key it was opened with, if any."""
        self.ident = secrets.token_hex(16)
        self.used = 0.0
        """When, by the loop's time."""
        self._token: str | None = None
        self.secrets: deque[str] = deque(maxlen=_MOST_SECRETS)
        """What answers had of keys: `start` shows them, and no other tool."""

    async def enter(self, name: str | None = None, **beginning: Any) -> None:
        """Work in a new sandbox from now on; without a beginning also in one that is there."""
        made: Body = {"name": name}
        if not name:
            made = {"name": f"agent-{secrets.token_hex(4)}", "ttl_seconds": _LIFETIME}
        try:
            await self.send("POST", f"{CONTROL}/sandboxes", body=made | beginning, prefix="")
        except Refused as error:
            is_there = (error.answer.json or {}).get("code") == "duplicate_sandbox"
            if not name or beginning or not is_there:
                raise
        self.sandbox, self._token = made["name"].lower(), None
        self.secrets.clear()

    async def prefix(self) -> str:
        """The prefix of the sandbox, which is made if there is none."""
        if self.sandbox is None:
            await self.enter()
        return f"/s/{self.sandbox}"

    async def credentials(self) -> Body:
        """The credentials of the sandbox, with a token that is used from now on."""
        found: Body = await self.get("/credentials")
        self._token = found["jwt"]
        return found

    async def token(self) -> str:
        """The ready token."""
        return self._token or str((await self.credentials())["jwt"])

    async def get(self, path: str, /, **query: Any) -> Any:
        """What a control, or the API, answers. Raises Refused also for a body that is no JSON."""
        answer = await self.ask("GET", path, **query)
        if answer.json is None:  # a fault rule cut it
            raise Refused(answer)
        return answer.json

    async def ask(self, method: str, path: str, body: Body | None = None, /, **query: Any) -> Reply:
        """The whole answer of a control, or of the API below `/v2` to the ready token."""
        if not path.startswith("/v2/"):
            return await self.send(method, CONTROL + path, body=body, query=query)
        # the journal counts these to the command, and not to what is tested
        return await self.send(
            method,
            path,
            headers={"authorization": f"Bearer {await self.token()}", "user-agent": COMMAND},
            body=body,
            query=query,
        )

    async def page(self, path: str, accept: str, **query: Any) -> Reply:
        """A page of the server, as the sandbox shows it if there is one."""
        prefix = "" if self.sandbox is None else f"/s/{self.sandbox}"
        return await self.send("GET", path, headers={"accept": accept}, query=query, prefix=prefix)

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Body | None = None,
        body: Any = None,
        prefix: str | None = None,
    ) -> Reply:
        """Send a request to the sandbox, or below another prefix. Controls get the keys.

        Raises Wrong for one that no socket would take.
        """
        if prefix is None:
            prefix = await self.prefix()
        sent, content = {"user-agent": "agent"}, b""  # the journal shows it
        if body is not None:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
            sent["content-type"] = "application/json"
        sent.update(headers or {})
        if path.startswith(CONTROL):
            sent.update(self.keys)
        asked = urlencode(given(**(query or {})), doseq=True)
        if len(path) + len(asked) + sum(map(len, sent.values())) > LARGEST_HEAD:
            raise Wrong(f"Path, query and headers are larger than {LARGEST_HEAD} bytes. Send less.")
        answer = await self._ask(Question(method, prefix + path, asked, sent, content))
        if answer.status == 401:
            self._token = None  # it may have ended: the next call gets another
        if answer.is_refused:
            raise Refused(answer)
        return answer


def segment(value: str) -> str:
    """An id as a segment of a path. Raises Wrong for a text that would be several, or none."""
    if not value or "/" in value or value in (".", ".."):
        raise Wrong(f"{value[:40]!r} is not an id. List the records to see their ids.")
    return value


def path_of_api(path: str) -> str:
    """A path of the API, decoded.

    Raises Wrong for one that leads out of the sandbox, or to a control.
    """
    path = unquote(path)
    if not path.startswith("/") or {".", ".."} & set(path.split("/")):
        raise Wrong("`path` is not a path of the API. Give `operation`, such as listOrders.")
    if path.startswith((CONTROL, "/s/", *CONSOLE)):
        raise Wrong(
            "call_api calls the API alone. What /_sandbox does, other tools do, such as orders and"
            " clock."
        )
    return path
