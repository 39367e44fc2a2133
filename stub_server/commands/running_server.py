"""A client of a running server: the control surface and the API of one sandbox, over HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from ..engine.sandbox import DEFAULT
from ..files.package import MEDIA

TIMEOUT = 60.0  # seconds: a certification takes up to half of them
_PAGE = 100


class Away(Exception):
    """No server answers, or one that is no sandbox."""


class Refused(Exception):
    """The server refused the request. Message, reasons and body are the server's."""

    def __init__(
        self, message: str, code: str | None, reasons: Sequence[str] = (), body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.reasons, self.body = code, tuple(reasons), dict(body or {})


class RunningServer:
    """One sandbox of a server: `async with RunningServer(...) as server`. Every request raises Away and Refused."""

    def __init__(self, url: str, sandbox: str, headers: Mapping[str, str]) -> None:
        """`headers` are sent to the control surface: they have a key."""
        self._url, self._sandbox, self._headers = url.rstrip("/"), sandbox, headers
        self.base = f"{self._url}/s/{quote(sandbox, safe='')}"
        # Reading the machine's certificate authorities takes a quarter of a second.
        is_plain = urlsplit(url).scheme == "http"
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else httpx2.create_ssl_context()
        self._client = httpx2.AsyncClient(timeout=TIMEOUT, verify=verify, trust_env=not is_plain)

    async def __aenter__(self) -> RunningServer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def check_sandbox(self) -> None:
        """Check that the sandbox exists, without creating it."""
        if self._sandbox == DEFAULT:
            return
        try:
            await self.control("GET", "")
        except Refused as refusal:
            if refusal.code != "sandbox_not_found":
                raise
            advice = "`stub-server sandboxes` lists the sandboxes, `stub-server fork NAME` creates one."
            raise Refused(f"{refusal} {advice}", refusal.code) from None

    async def control(self, method: str, path: str, **options: Any) -> Any:
        """The body of an answer of the control surface."""
        return self._body_of(await self._control(method, path, **options))

    async def every(self, path: str, member: str, query: Mapping[str, str] | None = None) -> dict[str, list[Any]]:
        """All pages of a list of the control surface."""
        found: list[Any] = []
        page = 1
        while True:
            answer = await self.control("GET", path, params={**(query or {}), "limit": _PAGE, "page": page})
            found += answer[member]
            if not answer["pagination"]["has_next"]:
                return {member: found}
            page += 1

    async def api(self, token: str, path: str, **options: Any) -> Any:
        """The body of an answer of the API to a GET."""
        headers = {"Authorization": f"Bearer {token}"}
        return self._body_of(await self._send("GET", self.base + path, headers=headers, **options))

    async def download(self, path: str, query: Mapping[str, Any], media: str = MEDIA) -> bytes:
        """A file of a media type from the control surface."""
        response = await self._control("GET", path, params=query)
        if response.headers.get("content-type") != media:
            self._body_of(response)  # raises for a refusal
            raise self._foreign()
        return response.content

    async def _control(self, method: str, path: str, **options: Any) -> httpx2.Response:
        headers = {**self._headers, **options.pop("headers", {})}
        return await self._send(method, f"{self.base}/_sandbox{path}", headers=headers, **options)

    async def _send(self, method: str, url: str, **options: Any) -> httpx2.Response:
        try:
            return await self._client.request(method, url, **options)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            why = str(error) or type(error).__name__
            raise Away(
                f"no sandbox answers at {self._url} ({why}). Start one with stub-server, or give --server."
            ) from None

    def _foreign(self) -> Away:
        return Away(f"the server at {self._url} is not a compatible sandbox. Give another --server.")

    def _body_of(self, response: httpx2.Response) -> Any:
        try:
            body = None if response.status_code == 204 else response.json()
        except ValueError:
            raise self._foreign() from None
        if response.is_success:
            return body
        refusal = body if isinstance(body, dict) else {}
        code = refusal.get("code")
        message = str(refusal.get("message", f"{self._url} answered {response.status_code}."))
        if response.status_code >= 500:
            raise Away(message)
        if code == "admin_key_required" and "X-Sandbox-Control-Key" not in self._headers:
            raise Refused("the server needs a key: give --admin-key, or --control-key where the command has it.", code)
        raise Refused(message, code, [str(detail.get("message")) for detail in refusal.get("details", ())], refusal)
