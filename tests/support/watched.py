"""A server that is looked at before and after every request: a refused one changes nothing, byte
for byte.
"""

import itertools
import socket
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import closing, contextmanager
from typing import Any

import httpx2
import orjson
from starlette.types import Message, Receive, Scope, Send

from stub_server.app import create_app
from stub_server.cli.listening import with_port
from stub_server.core.slices import at_once
from stub_server.engine.scheduler import due_jobs
from stub_server.server.layers.routing import Application
from stub_server.server.protocol import Limits

from ..engine.state import Facts, differences, state
from .estate import Estate, estate
from .live import FROZEN, NO_TLS, Live, serving
from .make import created
from .stores import stored

_numbers = itertools.count(1)


class Watched:
    """The application and its server:

    `codes` counts refusals, `wrong` is what they have changed.
    """

    live: Live

    def __init__(self, app: Application) -> None:
        self.app = app
        self.codes: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve as the application would; an answer is sent once it is looked at."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]
        world = self.app.sandboxes.find(path.split("/")[2]) if path.startswith("/s/") else None
        world = world or self.app.sandboxes.default
        at_once(due_jobs(world))  # what was due before the request is not its doing
        before = state(world) | sandboxes_of(self.app)
        number = world.log.number
        sent = []
        scope["extensions"] = {}  # answers come in messages, which can be looked at

        async def remember(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, remember)
        if sent[0]["status"] >= 400 and scope["method"] != "HEAD":
            code = orjson.loads(b"".join(message["body"] for message in sent[1:]))["code"]
            self.codes[code] += 1
            found = changed(before, state(world) | sandboxes_of(self.app), scope)
            if found or number != world.log.number:
                self.wrong.append(
                    f"{scope['method']} {path} {code}: {sorted(found)}, step {world.log.number}"
                )
        for message in sent:
            await send(message)


def sandboxes_of(app: Application) -> Facts:
    """Which sandboxes there are, each with what the server knows of it; that one was
    asked for is counted.
    """
    return {
        f"sandbox {entry.sandbox.name}": (
            id(entry.sandbox), entry.sandbox.name, entry.parent, entry.created_on_first_use, entry.created_at,
            entry.expires_at, entry.sandbox.log.number,
        )
        for entry in app.sandboxes.entries()
    }  # fmt: skip


def changed(before: Facts, after: Facts, scope: MutableMapping[str, Any]) -> set[str]:
    """The facts that a request changed; that an API key was used is counted, whatever its request
    is answered.
    """
    found = set(differences(before, after))
    if b"Bearer sk_" in dict(scope["headers"]).get(b"authorization", b""):
        found = {name for name in found if not name.endswith(("usage", "unrecorded usage"))}
    return found


@contextmanager
def watching() -> Iterator[Watched]:
    """A server that is looked at."""
    with stored(FROZEN) as settings, socket.create_server(("127.0.0.1", 0)) as listener:
        settings = with_port(settings, listener)
        watched = Watched(create_app(settings))
        with serving(watched, Limits(), listener) as port:
            watched.live = Live(watched.app, settings, port)
            yield watched


@contextmanager
def unchanged(watched: Watched) -> Iterator[None]:
    """A block in which requests are refused, and none of them changes anything."""
    watched.wrong.clear()
    watched.codes.clear()
    yield
    assert [] == watched.wrong
    assert watched.codes, "no refusal was looked at"


@contextmanager
def own_shop(live: Live, sink: str) -> Iterator[Estate]:
    """A merchant in a new sandbox, which is dropped at the end."""
    name = f"refused-{next(_numbers)}"
    # By request: a sandbox that a mention created makes room for others.
    asked = {"name": name, "scenario": "empty", "seed": 42}
    created(httpx2.post(f"{live.url}/_sandbox/sandboxes", json=asked, timeout=60, verify=NO_TLS))
    with closing(estate(live, name, sink)) as made:
        yield made
    live.forget(name)
