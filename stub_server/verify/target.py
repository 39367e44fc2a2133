"""The backend that is judged, over HTTP: four requests at once, no redirect, and as slow as it asks for."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from time import monotonic

import httpx2

from .exchange import Answer, Exchange, Request

AT_ONCE = 4
LONGEST = 8 * 1024 * 1024  # bytes of an answer
_TIMEOUT = 20.0
_PATIENCE = 30.0  # seconds for which 429 is waited out


class Away(Exception):
    """The target does not answer, or answers what is no HTTP: says how."""


class Target:
    """One per run. To be closed."""

    def __init__(
        self, url: str, headers: tuple[tuple[str, str], ...], trusted: str | None, told: Callable[[Exchange], None]
    ) -> None:
        """`url` is the parent of `/v2`; `headers` go with every request; `trusted` is a file of certificates."""
        context = True if trusted is None else ssl.create_default_context(cafile=trusted)
        self._base, self._headers, self._told = url.removesuffix("/").removesuffix("/v2"), headers, told
        self._client = httpx2.AsyncClient(
            timeout=_TIMEOUT,
            follow_redirects=False,
            verify=context,
            trust_env=False,
            limits=httpx2.Limits(max_connections=AT_ONCE),
        )
        self._places = asyncio.Semaphore(AT_ONCE)
        self.requests, self._failures = 0, 0

    async def send(self, request: Request) -> Answer:
        """The answer. Status 0 is none, whose body says why. Raises Away when three requests in a row have none."""
        until = monotonic() + _PATIENCE
        while True:
            async with self._places:
                answer = await self._sent(request)
            pause = answer.header("retry-after") or "1"
            if answer.status != 429 or monotonic() > until:
                return answer
            await asyncio.sleep(min(float(pause) if pause.isdigit() else 1.0, 10.0))

    async def _sent(self, request: Request) -> Answer:
        url = self._base + request.path + (f"?{request.query}" if request.query else "")
        began = monotonic()
        self.requests += 1
        try:
            async with self._client.stream(
                request.method, url, headers=[*self._headers, *request.headers], content=request.body or None
            ) as response:
                parts, size = [], 0
                async for part in response.aiter_bytes():
                    size += len(part)
                    if size > LONGEST:
                        break
                    parts.append(part)
                headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers.raw)
                answer = Answer(response.status_code, headers, b"".join(parts), monotonic() - began)
        except (httpx2.HTTPError, httpx2.InvalidURL, ssl.SSLError, OSError) as error:
            self._failures += 1
            if self._failures >= 3:
                raise Away(f"{type(error).__name__}: {error}") from None
            return Answer(0, (), f"{type(error).__name__}: {error}".encode(), monotonic() - began)
        self._failures = 0
        self._told(Exchange(request, answer))
        return answer

    async def close(self) -> None:
        """End its connections."""
        await self._client.aclose()
