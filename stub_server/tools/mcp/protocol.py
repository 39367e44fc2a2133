"""The tools as a server of the Model Context Protocol, by the package `mcp` of the
protocol's maintainers.
"""

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext

from ...version import __version__
from .session import Session
from .tools import INSTRUCTIONS, call, schema_of, tools

Context = ServerRequestContext[Any, Any]


def server_of(session_of: Callable[[Context], Session]) -> Server[Any]:
    """The server whose tools work in the session of each request."""

    async def list_tools(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = []
        for name, tool in tools().items():
            schema = schema_of(tool)
            listed.append(
                types.Tool(name=name, description=tool["description"], input_schema=schema)
            )
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        result = await call(session_of(context), params.name, params.arguments or {})
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=result.text)]
        return types.CallToolResult(
            content=content, structured_content=result.shown_facts, is_error=result.is_error
        )

    return Server(
        "membership-sandbox",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
