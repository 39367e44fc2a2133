"""The sandbox as a foreign backend: a layer around all others, in which mutants change
requests and answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from stub_server.server.layers import inside
from stub_server.server.layers.inside import Question
from stub_server.server.request import CONTROL
from stub_server.tools.verify.exchange import Answer, Request

from ..support.contract import document

Ask = Callable[[Request], Awaitable[Answer]]
"""Sends a request to the sandbox, through the mutants that are nearer to it."""
Act = Callable[[Request, Ask], Awaitable[Answer]]
"""What a mutant does with a request: it asks, once or more often, and answers."""
_OWN = (("host", "127.0.0.1"),)


class Backend:
    """The outermost layer.

    The control surface is passed on unchanged: a foreign backend has none.
    """

    def __init__(
        self,
        app: ASGIApp,
        acts: Sequence[Act] = (),
        *,
        find: Callable[[str], Act] | None = None,
        delay: float = 0.0,
    ) -> None:
        """`delay` is in seconds, added to each answer; `find` gives the act of a name that
        `POST /_mutants` sets.
        """
        self.app, self._acts, self._find, self._delay = app, acts, find, delay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(CONTROL):
            await self.app(scope, receive, send)
            return
        if scope["path"] == "/_mutants" and self._find is not None:
            self._acts = [self._find(name) for name in json_of(await _request(scope, receive))]
            await _asking(self.app, scope)(own("POST", f"{CONTROL}/reset"))
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body"})
            return
        ask = _asking(self.app, scope)
        for act in reversed(self._acts):
            ask = _through(act, ask)
        answer = await ask(await _request(scope, receive))
        await asyncio.sleep(self._delay)
        encoded = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": answer.body})


def _through(act: Act, ask: Ask) -> Ask:
    return lambda request: act(request, ask)


def _asking(app: ASGIApp, origin: Scope) -> Ask:
    """Sends requests to an application from the client of `origin`."""

    async def ask(request: Request) -> Answer:
        question = Question(
            request.method,
            unquote(request.path),
            request.query,
            dict(request.headers),
            request.body,
        )
        reply = await inside.ask(app, "", question, origin["client"])
        return Answer(reply.status, tuple(reply.headers.items()), reply.body)

    return ask


async def _request(scope: Scope, receive: Receive) -> Request:
    body, more = bytearray(), True
    while more:
        message = await receive()
        body.extend(message.get("body", b""))
        more = message.get("more_body", False)
    headers = tuple(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
    )
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return Request(scope["method"], path, query, headers, bytes(body))


def is_for(request: Request, operation: str) -> bool:
    """Whether a request is one to an operation of the contract."""
    known = document().routed(request.path)[0].get(request.method)
    return known is not None and known.id == operation


def own(method: str, path: str, body: Any = None) -> Request:
    """A request of the backend itself, to its control surface."""
    if body is None:
        return Request(method, path, headers=_OWN)
    return with_json(
        Request(method, path, headers=(*_OWN, ("content-type", "application/json"))), body
    )


def with_header(request: Request, name: str, value: str | None) -> Request:
    """A request with one header set, or without it."""
    kept = tuple(pair for pair in request.headers if pair[0].lower() != name)
    return request._replace(headers=kept if value is None else (*kept, (name, value)))


def without_query(request: Request, name: str, *more: tuple[str, str]) -> Request:
    """A request without a query parameter, and with others."""
    kept = [pair for pair in parse_qsl(request.query, keep_blank_values=True) if pair[0] != name]
    return request._replace(query=urlencode([*kept, *more]))


async def as_owner(request: Request, ask: Ask) -> Request:
    """A request with the credential of the merchant, which may do everything."""
    said = await ask(own("GET", f"{CONTROL}/credentials"))
    return with_header(request, "authorization", f"Bearer {json_of(said)['jwt']}")


async def without_effect(request: Request, ask: Ask) -> Answer:
    """How the sandbox would answer the request of an owner: a copy of it is asked, and deleted."""
    fork = json_of(await ask(own("POST", f"{CONTROL}/sandboxes/default/fork", {})))["sandbox"]
    credential = f"Bearer {fork['credentials']['jwt']}"
    inside = with_header(
        request._replace(path=f"/s/{fork['name']}{request.path}"), "authorization", credential
    )
    answer = await ask(inside)
    await ask(own("DELETE", f"{CONTROL}/sandboxes/{fork['name']}"))
    return answer


def json_of(message: Request | Answer) -> Any:
    """The body as JSON; an empty object where it is none."""
    try:
        return orjson.loads(message.body)
    except ValueError:
        return {}


def with_json(request: Request, body: Any) -> Request:
    """A request with another body."""
    data = orjson.dumps(body)
    return with_header(request._replace(body=data), "content-length", str(len(data)))


def with_body(answer: Answer, body: bytes) -> Answer:
    """An answer with another body."""
    headers = tuple(
        (name, str(len(body)) if name == "content-length" else value)
        for name, value in answer.headers
    )
    return answer._replace(body=body, headers=headers)


def rewritten(answer: Answer, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Answer:
    """An answer in whose JSON every object, from the innermost out, is what `change`
    makes of it.
    """

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        return (
            change({name: walk(item) for name, item in value.items()})
            if isinstance(value, dict)
            else value
        )

    found = json_of(answer)
    return with_body(answer, orjson.dumps(walk(found))) if found else answer
