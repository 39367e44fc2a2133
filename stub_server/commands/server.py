"""A running server as the command sees it: its control surface and its API, over HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from ..engine.sandbox import DEFAULT
from ..files.package import MEDIA
from .options import ControlKey

PATIENCE = 60.0  # seconds: a certification takes up to half of them
_PAGE = 100


class Away(Exception):
    """Nobody answers there, or nobody who is a sandbox."""


class Refused(Exception):
    """The server refuses; the message, the reasons and the whole body are its own."""

    def __init__(
        self, message: str, code: str | None, reasons: Sequence[str] = (), body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.reasons, self.body = code, tuple(reasons), dict(body or {})


class RunningServer:
    """One sandbox of a server: `async with RunningServer(...) as server`."""

    def __init__(self, url: str, sandbox: str, admin_key: str | None) -> None:
        self.url = url.rstrip("/")
        self._sandbox = sandbox
        self._entries = f"{self.url}/_sandbox/sandboxes"
        self._entry = f"{self._entries}/{quote(sandbox, safe='')}"
        self.base = f"{self.url}/s/{quote(sandbox, safe='')}"
        name = "X-Sandbox-Control-Key" if isinstance(admin_key, ControlKey) else "X-Sandbox-Admin-Key"
        self._headers = {} if admin_key is None else {name: admin_key}
        # Without certificates to check, reading the machine's authorities is not worth a quarter of a second.
        is_plain = urlsplit(url).scheme == "http"
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else httpx2.create_ssl_context()
        self._client = httpx2.AsyncClient(timeout=PATIENCE, verify=verify, trust_env=not is_plain)

    async def __aenter__(self) -> RunningServer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def check_sandbox(self) -> None:
        """Whether the sandbox is there, without creating it. Raises Away, Refused."""
        if self._sandbox == DEFAULT:
            return
        try:
            await self.control("GET", "")
        except Refused as refusal:
            if refusal.code != "sandbox_not_found":
                raise
            told = "`stub-server worlds` lists those that there are, `stub-server fork NAME` makes one."
            raise Refused(f"{refusal} {told}", refusal.code) from None

    async def drop_sandbox(self) -> None:
        """Have the sandbox be no more. Raises Away, Refused."""
        await self._ask("DELETE", self._entry, headers=self._headers)

    async def control(self, method: str, path: str, **options: Any) -> Any:
        """Ask the control surface; answers the body. Raises Away, Refused."""
        return await self._ask(method, f"{self.base}/_sandbox{path}", headers=self._headers, **options)

    async def every(self, path: str, member: str, query: Mapping[str, str] | None = None) -> dict[str, list[Any]]:
        """A list of the control surface, all its pages together. Raises Away, Refused."""
        found: list[Any] = []
        page = 1
        while True:
            answer = await self.control("GET", path, params={**(query or {}), "limit": _PAGE, "page": page})
            found += answer[member]
            if not answer["pagination"]["has_next"]:
                return {member: found}
            page += 1

    async def api(self, token: str, path: str, **options: Any) -> Any:
        """Read from the API; answers the body. Raises Away, Refused."""
        return await self._ask("GET", self.base + path, headers={"Authorization": f"Bearer {token}"}, **options)

    async def download(self, path: str, query: Mapping[str, Any], media: str = MEDIA) -> bytes:
        """Read a file of a media type from the control surface. Raises Away, Refused."""
        response = await self._send("GET", path, query)
        if response.headers.get("content-type") != media:
            self._body_of(response)  # which refuses, unless this is no sandbox
            raise Away(f"what answers at {self.url} is no sandbox of this kind.")
        return response.content

    async def upload(self, path: str, file: bytes, query: Mapping[str, bool]) -> Any:
        """Send a file to the control surface; answers the body. Raises Away, Refused."""
        return self._body_of(await self._send("POST", path, query, content=file, headers={"Content-Type": MEDIA}))

    async def _send(self, method: str, path: str, query: Mapping[str, Any], **options: Any) -> httpx2.Response:
        options["headers"] = {**self._headers, **options.get("headers", {})}
        options["params"] = dict(query)
        try:
            return await self._client.request(method, f"{self.base}/_sandbox{path}", **options)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise self._away(error) from None

    async def _ask(self, method: str, url: str, **options: Any) -> Any:
        try:
            response = await self._client.request(method, url, **options)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise self._away(error) from None
        return self._body_of(response)

    def _away(self, error: Exception) -> Away:
        why = str(error) or type(error).__name__
        return Away(f"no sandbox answers at {self.url} ({why}). Start one with stub-server, or give --server.")

    def _body_of(self, response: httpx2.Response) -> Any:
        """The body of an answer. Raises Away, Refused."""
        try:
            body = None if response.status_code == 204 else response.json()
        except ValueError:
            raise Away(f"what answers at {self.url} is no sandbox of this kind.") from None
        if response.is_success:
            return body
        said = body if isinstance(body, dict) else {}
        code, message = said.get("code"), str(said.get("message", f"{self.url} answered {response.status_code}."))
        if response.status_code >= 500:
            raise Away(message)
        if code == "admin_key_required":
            if "X-Sandbox-Control-Key" in self._headers:
                raise Refused(message, code)
            raise Refused("the server needs a key: give --admin-key, or --control-key where the command has it.", code)
        raise Refused(message, code, [str(detail.get("message")) for detail in said.get("details", ())], said)
