"""A sandbox that writes down what it is asked and what it answers, and a run of `verify`
against it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import httpx2

from stub_server.app import create_app
from stub_server.server.protocol import Limits
from stub_server.settings import Settings
from stub_server.tools.verify.exchange import Answer, Exchange, Request
from stub_server.tools.verify.options import Options
from stub_server.tools.verify.run import Runner

from ..support.live import NO_TLS
from ..support.live import serving as served
from .backend import Act, Ask, Backend


class Watched(NamedTuple):
    """A run: what it sent with what was answered, in the order of the answers, and
    what it learned.
    """

    exchanges: list[Exchange]
    run: Runner


@contextmanager
def backend(exchanges: list[Exchange], *acts: Act) -> Iterator[str]:
    """Serve a sandbox, changed by acts, whose exchanges are added to a list; answers its address."""

    async def written_down(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        exchanges.append(Exchange(request, answer))
        return answer

    settings = Settings(log="quiet")
    app = create_app(settings)
    app.middlewares.insert(0, partial(Backend, acts=[written_down, *acts]))
    with served(app, Limits()) as port:
        yield f"http://127.0.0.1:{port}"


def watched(
    *acts: Act,
    write: bool = False,
    charges: bool = False,
    only: tuple[str, ...] = (),
    other: str = "",
) -> Watched:
    """Compare a sandbox, changed by acts, with what the contract has."""
    exchanges: list[Exchange] = []
    with backend(exchanges, *acts) as url:
        credentials = httpx2.get(f"{url}/_sandbox/credentials", timeout=30, verify=NO_TLS).json()
        options = Options(url, credentials["jwt"], write, charges, only, other=other)
        run = Runner(options, lambda done, total: None)
        asyncio.run(run.run())
    return Watched(exchanges, run)
