"""What the tools of one agent work with: its sandbox, how it asks the API and the controls, and what it was told."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urlencode

import orjson

from ...server.request import CONTROL

Json: TypeAlias = dict[str, Any]
AGENT = "agent"
"""The user agent of every request: the journal names it."""
UNUSED = 86_400  # seconds after which a sandbox is deleted that was made for an agent
MOST_SECRETS = 20  # that `start` shows


class Answer(NamedTuple):
    """An answer of the API or of a control. `json` is None where the body is no JSON."""

    status: int
    headers: Mapping[str, str]
    json: Any
    text: str = ""

    @property
    def is_refused(self) -> bool:
        return not 200 <= self.status < 300

    @property
    def request_id(self) -> str:
        return self.headers.get("x-request-id", "")


Ask: TypeAlias = Callable[[str, str, str, bytes, Mapping[str, str]], Awaitable[Answer]]
"""Sends a method, a decoded path with its prefix, a query, a body and headers to the server; returns the answer."""


class Refused(Exception):
    """The API or a control refused what a tool asked; `tool` and `arguments` are those of the call."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"refused with {answer.status}")
        self.answer = answer


class Wrong(Exception):
    """A tool was called with arguments that mean nothing. The message says what to send instead."""


class Session:
    """One agent. `sandbox` is None until a tool needs one, or names one."""

    def __init__(self, ask: Ask, keys: Mapping[str, str] | None = None, sandbox: str | None = None) -> None:
        """`keys` are headers that open the controls."""
        self._ask, self.keys, self.sandbox = ask, dict(keys or {}), sandbox
        self._token: str | None = None
        self.secrets: dict[str, str] = {}
        """Secrets that answers had, by what they are: `start` shows them, and no other tool."""

    # -- the sandbox

    async def enter(self, name: str | None = None, **beginning: Any) -> Json:
        """Work in a sandbox from now on: in the one that is named, else in a new one; returns its credentials."""
        if name is None or beginning or not await self._exists(name):
            made = name or f"agent-{secrets.token_hex(4)}"
            ttl = {} if name else {"ttl_seconds": UNUSED}
            await self._send("POST", f"{CONTROL}/sandboxes", body={"name": made, **ttl, **beginning}, prefix="")
            name = made
        self.sandbox, self._token = name, None
        self.secrets.clear()
        return await self.credentials()

    async def _exists(self, name: str) -> bool:
        answer = await self.send("GET", f"{CONTROL}/clock", prefix=prefix_of(name))
        if answer.is_refused and (answer.json or {}).get("code") != "sandbox_not_found":
            raise Refused(answer)
        return not answer.is_refused

    async def credentials(self) -> Json:
        found: Json = await self.control("GET", "/credentials")
        self._token = found["jwt"]
        return found

    async def prefix(self) -> str:
        """The prefix of the sandbox, which is made if there is none."""
        if self.sandbox is None:
            await self.enter()
        return prefix_of(str(self.sandbox))

    def keep_secret(self, what: str, secret: str) -> None:
        """Remember a secret; the newest are kept."""
        self.secrets[what] = secret
        if len(self.secrets) > MOST_SECRETS:
            del self.secrets[next(iter(self.secrets))]

    # -- asking

    async def control(self, method: str, path: str, body: Json | None = None, **query: Any) -> Any:
        """What a control of the sandbox answers. Raises Refused."""
        return (await self._send(method, CONTROL + path, body=body, query=query, prefix=await self.prefix())).json

    async def change(self, path: str, body: Json | None = None, method: str = "POST", **query: Any) -> Answer:
        """The answer of a control that changes something. Raises Refused."""
        return await self._send(method, CONTROL + path, body=body, query=query, prefix=await self.prefix())

    async def read(self, path: str, **query: Any) -> Any:
        """What the API answers to a GET with the ready token. Raises Refused."""
        answer = await self.api("GET", path, query=query)
        if answer.is_refused:
            raise Refused(answer)
        return answer.json

    async def api(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        bearer: str | None = None,
    ) -> Answer:
        """What the API answers, with the ready token, or with another bearer; with an empty one without any."""
        prefix = await self.prefix()
        if bearer is None:
            bearer = self._token or (await self.credentials())["jwt"]
        own = {"authorization": f"Bearer {bearer}"} if bearer else {}
        return await self.send(method, path, query=query, body=body, headers={**own, **(headers or {})}, prefix=prefix)

    async def page(self, path: str, accept: str, **query: Any) -> Answer:
        """A page of the server, as the sandbox shows it if there is one."""
        prefix = "" if self.sandbox is None or path.startswith("/s/") else prefix_of(self.sandbox)
        return await self.send("GET", path, query=query, headers={"accept": accept}, prefix=prefix)

    async def send(
        self,
        method: str,
        path: str,
        *,
        prefix: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request, and return the answer, be it a refusal. Controls get the keys."""
        sent = {"user-agent": AGENT, **(headers or {})}
        if path.startswith(CONTROL):
            sent |= self.keys
        content = b"" if body is None else orjson.dumps(body)
        if content:
            sent.setdefault("content-type", "application/json")
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        return await self._ask(method, prefix + path, urlencode(asked, doseq=True), content, sent)

    async def _send(self, method: str, path: str, **parts: Any) -> Answer:
        answer = await self.send(method, path, **parts)
        if answer.is_refused:
            raise Refused(answer)
        return answer


def prefix_of(sandbox: str) -> str:
    return f"/s/{segment(sandbox)}"


def segment(value: str) -> str:
    """An id as a segment of a path. Raises Wrong for a text that would be several, or none."""
    if not value or "/" in value or value in (".", ".."):
        raise Wrong(f"{value[:40]!r} is no id. List the records to see theirs.")
    return value


def path_of_api(path: str) -> str:
    """A path of the API, decoded. Raises Wrong for one that leads out of the sandbox, or to a control."""
    path = unquote(path)
    if not path.startswith("/") or {".", ".."} & set(path.split("/")):
        raise Wrong("`path` is one of the API, such as /v2/orders. Or give `operation`, such as listOrders.")
    if path.startswith((CONTROL, "/s/")):
        raise Wrong("call_api calls the API alone. What /_sandbox does, other tools do, such as orders and clock.")
    return path
