"""The address of an inbox: takes whatever is posted to it, as a receiver would, and answers as it was told."""

import asyncio

import orjson
from starlette.types import Receive, Scope

from ..calls.call import CALL, Call
from ..kernel.clock import wall_ms
from ..kernel.problem import Missing
from ..worlds.inbox import Answer, Message, is_name
from .connection import read_body
from .refusals import Headers
from .selection import create_pending

_BODILESS = (204, 205, 304)


async def answer_delivery(name: str, scope: Scope, receive: Receive) -> None:
    """Keep a request in the inbox of this name. It is no operation: senders decide what they post. Raises Missing."""
    if is_name(name) is None:
        raise Missing("The name of an inbox has 1 to 63 of the characters A-Z, a-z, 0-9, -, _ and .")
    call: Call = scope[CALL]
    body = await read_body(receive, call.headers.get(b"content-length"))
    await create_pending(call)
    headers = _joined(scope["headers"])
    message = call.server.sandboxes.inbox(call.sandbox).receive(call.sandbox, name, headers, body, wall_ms())
    if message.answer.delay_ms:
        with call.server.waiting.of(call):
            await asyncio.sleep(message.answer.delay_ms / 1000)
    answer = b"" if message.answer.status in _BODILESS else _body(message)
    head: Headers = [(key.encode(), value.encode()) for key, value in _headers(message.answer, len(answer)).items()]
    call.answer = message.answer.status, head, (answer,), answer


def _body(message: Message) -> bytes:
    verdict = message.verdict
    told = {"received": message.number, "verified": verdict.reason is None, "reason": verdict.reason}
    return orjson.dumps(told)


def _headers(answer: Answer, length: int) -> dict[str, str]:
    own = {name.lower(): value for name, value in answer.headers}
    return (
        own
        if answer.status in _BODILESS
        else {**own, "content-type": "application/json", "content-length": str(length)}
    )


def _joined(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name, several of one name in one value."""
    joined: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1"), value.decode("latin-1")
        joined[name] = f"{joined[name]}, {text}" if name in joined else text
    return joined
