"""A coding agent that knows nothing but the tools: what it calls, and how much it has to read."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from ..support.make import typed

T = TypeVar("T")
MOST = 6_000  # bytes of a result: 1,500 tokens


class Agent:
    """One session. It counts its calls, and the bytes of the results."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.calls = 0
        self.bytes = 0

    async def __call__(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a tool. Every result is short, but one of which all was asked for."""
        result = await self.client.call_tool(tool, arguments)
        size = len(result.model_dump_json(by_alias=True, exclude_none=True).encode())
        assert size <= MOST or arguments.get("full"), text_of(result)
        self.calls += 1
        self.bytes += size
        return result

    async def retry(self, refused: CallToolResult) -> CallToolResult:
        """Do what a refusal says."""
        call = facts_of(refused)["retry"]
        return await self(call["tool"], **call["arguments"])


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def facts_of(result: CallToolResult) -> dict[str, Any]:
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def shown_call(result: CallToolResult) -> dict[str, Any]:
    """The arguments of call_api that a result shows ready to send."""
    found = re.search(r"call_api (\{.*\})$", text_of(result), re.MULTILINE)
    assert found is not None
    return typed(dict, json.loads(found[1]))


def over_http(
    url: str, work: Callable[[Agent], Awaitable[T]], headers: dict[str, str] | None = None
) -> T:
    """What an agent does at the endpoint of a server, or of a sandbox."""

    async def run() -> T | Exception:
        async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
            transport = streamable_http_client(f"{url}/_sandbox/mcp", http_client=client)
            async with Client(transport) as session:
                return await _done(work, session)

    return _outcome(run())


def over_stdio(work: Callable[[Agent], Awaitable[T]], *flags: str) -> T:
    """The same with the verb as an editor starts it."""

    async def run() -> T | Exception:
        command = StdioServerParameters(
            command=sys.executable, args=["-P", "-m", "stub_server", "mcp", *flags]
        )
        async with Client(command) as session:
            return await _done(work, session)

    return _outcome(run())


async def _done(work: Callable[[Agent], Awaitable[T]], session: Client) -> T | Exception:
    try:
        return await work(Agent(session))
    except Exception as error:  # the client would wrap it in groups
        return error


def _outcome(run: Coroutine[Any, Any, T | Exception]) -> T:
    found = asyncio.run(run)
    if isinstance(found, Exception):
        raise found
    return found
