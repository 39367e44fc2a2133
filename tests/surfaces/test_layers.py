"""The way of a request: the list of layers, and what the outermost one ends."""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stub_server.app import create_app
from stub_server.server.layers.way import Way
from stub_server.server.reply import Answer, Streamed

from ..support.live import FROZEN

pytestmark = pytest.mark.check
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"


def name_of(layer: Any) -> str:
    """The class of a layer in the list."""
    return str(getattr(layer, "func", layer).__name__)


def test_the_page_on_architecture_lists_the_layers_as_the_code_has_them(database: str) -> None:
    app = create_app(replace(FROZEN, rate_limit=(3, 60), store=database))
    app.sandboxes.persistence.close()
    listed = re.findall(r"^\d+\. `(\w+)` ", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [*map(name_of, app.middlewares), "Dispatch"] == listed


def test_a_stream_that_cannot_be_sent_is_ended() -> None:
    """The sandbox has lost what the request saw, while it was answered."""
    app = create_app(replace(FROZEN, scenario="empty"))
    sandbox = app.sandboxes.default

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"{}"

    async def streaming(way: Way) -> Answer:
        way.begin(sandbox)
        return Streamed(chunks, b"application/json")

    async def ask() -> int:
        transport = httpx2.ASGITransport(context(streaming))
        async with httpx2.AsyncClient(transport=transport, base_url=FROZEN.url) as client:
            answer = await client.get("/here")
        with pytest.raises(StopAsyncIteration):
            await anext(chunks)
        return answer.status_code

    (context,) = [layer for layer in app.middlewares if name_of(layer) == "RequestContext"]
    chunks = pieces()
    sandbox.status.is_undone = True
    assert 503 == asyncio.run(ask())
