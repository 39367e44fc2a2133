"""What journeys are answered, held to Connexion's validation of responses."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from ..support.contract import document
from ..support.ledger import operation_at, serves_the_contract
from .stock import Responses, formats_known

Answer = tuple[str, str, tuple[int, list[tuple[str, str]], bytes]]


@cache
def _responses() -> Responses:
    return Responses(document().raw)


@contextmanager
def noted_successes(module: str) -> Iterator[list[Answer]]:
    """The answers of the API that clients get in the block, and which its contract
    calls successes.
    """
    found = {}
    sending = httpx2.Client.send

    def sent(client: httpx2.Client, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = sending(client, request, **options)
        path = request.url.raw_path.decode().partition("?")[0]
        operation = operation_at(request.method, path)
        if operation is None or operation.id not in document().operations or not response.is_closed:
            return response
        origin = f"{request.url.scheme}://{request.url.netloc.decode()}"
        is_told = response.status_code < 300 and "x-sandbox-simulated" not in response.headers
        if is_told and serves_the_contract(origin, module):
            answer = (response.status_code, [*response.headers.items()], response.content)
            # An answer that was seen before is as good as it was then.
            found[operation.id, answer[0], answer[2]] = request.method, _in_contract(path), answer
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx2.Client, "send", sent)
        answers: list[Answer] = []
        yield answers
        answers += found.values()


def _in_contract(path: str) -> str:
    """A path without the prefix of its sandbox."""
    parts = urlsplit(path).path.split("/")
    return "/" + "/".join(parts[3:]) if parts[1] == "s" else path


def faults(answers: list[Answer]) -> list[str]:
    """What Connexion says against the answers."""

    async def judged() -> list[str | None]:
        return [await _responses().fault(*answer) for answer in answers]

    with formats_known():
        return [fault for fault in asyncio.run(judged()) if fault is not None]
