"""The backend that is compared, over HTTP: at most four requests at once, no redirects, no cookies,
waits after 429.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from math import inf
from time import monotonic
from typing import Any

import httpx2

from ...contract.document import JSON, Operation
from ...core.clock import SECOND, wall_ms
from ...webhooks.sender import retry_after
from .exchange import Answer, Exchange, Request, base_of, bearer, texts_of
from .options import Options
from .variants import UNKNOWN_ID

AT_ONCE = 4
LONGEST = 8 * 1024 * 1024  # bytes of an answer
TRIES = 3
_TIMEOUT = 20.0  # seconds for a whole answer
_PAUSE = 0.5  # seconds between tries
_MOST_LOST = 5  # requests in a row that have no answer, each with its tries


class Away(Exception):
    """The target cannot be asked any more. The message says why, in words that follow its name."""


class Target:
    """One per run. Close it."""

    def __init__(self, options: Options, on_exchange: Callable[[Exchange], None]) -> None:
        """Without a proxy among the options, those of the environment are used (`HTTP_PROXY`,
        `HTTPS_PROXY`, `NO_PROXY`).
        """
        trusted = options.trusted
        proxy = options.proxy
        context = True if trusted is None else ssl.create_default_context(cafile=trusted)
        self._base = base_of(options.url)
        self._headers = options.headers
        self._bearer = bearer(options.token)
        self._on_exchange = on_exchange
        self._client = httpx2.AsyncClient(
            # the client's limits are per read: a trickling answer would never exceed them
            timeout=None,
            follow_redirects=False,
            verify=context,
            trust_env=proxy is None,
            proxy=proxy,
            # a session could replace a credential
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        self._places = asyncio.Semaphore(AT_ONCE)
        self._resumes = 0.0
        self._lost = 0
        self.requests = 0
        self.answers = 0
        self.repeated = 0
        self.limited = 0
        """How many requests were sent, answered, answered only when they were repeated, and
        answered 429.
        """
        self.until = inf
        """The moment (`monotonic`) until which to wait after a 429."""

    async def ask(self, method: str, path: str, body: bytes = b"", query: str = "") -> Answer:
        """The answer to a request with the user's credential. Raises Away if there is none."""
        headers = (*self._bearer, ("Content-Type", JSON)) if body else self._bearer
        return await self.send(Request(method, path, query, headers, body), TRIES)

    async def send(self, request: Request, tries: int = 1) -> Answer:
        """The answer; with status 0 there is none, and the body says why.

        Raises Away if nothing is answered.
        """
        for number in range(tries):
            answer = await self._patiently(request)
            self.repeated += number > 0 and answer.status > 0
            if answer.status or answer.seconds > _TIMEOUT:
                break
            await asyncio.sleep(_PAUSE)
        self._lost = 0 if answer.status else self._lost + 1
        if self._lost > _MOST_LOST:
            raise Away(f"does not answer: {answer.body.decode()}")
        return answer

    async def _patiently(self, request: Request) -> Answer:
        while True:
            async with self._places:
                await asyncio.sleep(self._resumes - monotonic())
                answer = await self._sent(request)
            if answer.status != 429:
                return answer
            self.limited += 1
            asked = retry_after(answer.header("retry-after"), wall_ms())
            pause = 1.0 if asked is None else asked / SECOND
            self._resumes = max(self._resumes, monotonic() + pause)
            if self._resumes > self.until:
                raise Away(
                    f"answers 429 and asks to wait {pause:.0f} s, longer than the time that is left"
                )

    async def _sent(self, request: Request) -> Answer:
        url = self._base + request.path + (f"?{request.query}" if request.query else "")
        headers = [*self._headers, *request.headers]
        content = request.body or None
        body = bytearray()
        began = monotonic()
        self.requests += 1
        try:
            async with (
                asyncio.timeout(_TIMEOUT),
                self._client.stream(
                    request.method, url, headers=headers, content=content
                ) as response,
            ):
                if "," in response.headers.get("content-encoding", ""):
                    return Answer(0, (), b"the body has a content coding within another")
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > LONGEST:
                        return Answer(0, (), b"an answer is larger than 8 MB")
            said = texts_of(response.headers.raw)
            answer = Answer(response.status_code, said, bytes(body), monotonic() - began)
            self.answers += 1
            self._on_exchange(Exchange(request, answer))
            return answer
        except TimeoutError:
            why = f"no whole answer within {_TIMEOUT:.0f} s"
        except httpx2.DecodingError:
            why = "the body is not in the content coding that its headers name"
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
            # the client's own words may repeat what was sent
            why = "there is no connection, it broke off, or the answer is not HTTP"
        return Answer(0, (), why.encode(), monotonic() - began)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()


async def together(*works: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run coroutines at once, and return their results; the first exception cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def rights_of(target: Target, operations: Sequence[Operation]) -> dict[str, str]:
    """Why operations are out of the credential's reach, by operationId.

    Each is asked about an unknown record, with a body that none accepts: this changes nothing.
    Raises Away, also if the credential is refused everywhere, and if no answer is JSON.
    """
    asking = []
    for operation in operations:
        path = operation.at_ids({each.name: UNKNOWN_ID for each in operation.parameters})
        body = b"" if operation.method == "GET" else b"[]"
        asking.append(target.ask(operation.method, path, body))
    answers = await together(*asking)
    if {answer.status for answer in answers} == {401}:
        raise Away("refuses the credential: 401 to every operation")
    if answers and not any(isinstance(answer.json(), dict) for answer in answers):
        said = answers[0].status or answers[0].body.decode()
        raise Away(
            f"answers no operation in JSON ({said}): give the final address above /v2, as redirects"
            " are not followed"
        )
    statuses: dict[str | None, set[int]] = defaultdict(set)  # by scheme, and by scope
    for operation, answer in zip(operations, answers, strict=True):
        for name in (operation.scheme, *operation.scopes):
            statuses[name].add(answer.status)
    closed = {}
    for operation, answer in zip(operations, answers, strict=True):
        lacking = [name for name in sorted(operation.scopes) if statuses[name] == {403}]
        if operation.scheme == "jwt" and answer.status in (401, 403):
            closed[operation.id] = "needs a JWT, and the credential is a key"
        elif operation.scheme == "bearer" and statuses["bearer"] == {401}:
            closed[operation.id] = (
                "needs a private key or a JWT, and the credential is a public key"
            )
        elif lacking:
            closed[operation.id] = f"the credential lacks {' or '.join(lacking)}"
    return closed
