"""The twelve tools, which `fixtures/agents.yaml` describes, as a server of the Model Context
Protocol, by the package `mcp` of the protocol's maintainers.
"""

from collections.abc import Awaitable, Callable
from functools import cache, partial
from importlib import import_module
from inspect import signature
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext

from ...contract.schema import Validator
from ...contract.source import fixture
from ...core.log import log
from ...core.members import given
from ...core.record import Body
from ...server.layers.violations import details_of
from ...version import __version__
from .acting import act
from .calling import refused
from .session import Refused, Session, Wrong
from .texts import Result

Context = ServerRequestContext[Any, Any]
Work = Callable[..., Awaitable[Result]]
INSTRUCTIONS = (
    "A sandbox of a Brazilian membership-commerce API: nothing here is real. Begin with start;"
    " place orders with call_api, pay them with orders, move time with clock. A refusal says which"
    " call works. history undoes, but no reset."
)
tools = partial(fixture, "agents.yaml")
"""The tools by name, as the file has them."""
_LONGEST_TEXT = 20_000  # characters of an argument that is a text; more would hold up others


@cache
def schema_of(name: str) -> Body:
    """The JSON schema of a tool's arguments."""
    tool = tools()[name]
    properties, required = tool["properties"], tool.get("required", [])
    if "actions" in tool:
        properties = {"action": {"type": "string", "enum": list(tool["actions"])}, **properties}
        required = ["action"]
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        found["required"] = required
    return found


def function_of(named: str) -> Work:
    """The function of a tool or an action, such as `acting.open_inbox`."""
    module, name = named.split(".")
    found: Work = getattr(import_module(f".{module}", __package__), name)
    return found


async def call(session: Session, name: str, arguments: Body) -> Result:
    """What a tool answers.

    A wrong call, and a refusal of the server, are results that say what to do.
    """
    try:
        return await _work(session, name, given(**arguments))
    except Refused as error:
        return await refused(session, error.answer)
    except Wrong as error:
        return Result([str(error)], is_error=True)
    except Exception:
        log.exception("defect in the tool %s", name)
        return Result(
            [f"{name} failed by a defect of its own, which is in the server's log."], is_error=True
        )


async def _work(session: Session, name: str, own: Body) -> Result:
    """What a tool, or its action, answers. Raises Refused, and Wrong for arguments that it does not
    have.
    """
    tool = tools().get(name)
    if tool is None:
        raise Wrong(f"There is no tool {name[:40]}. The tools are {', '.join(tools())}.")
    _check(name, own)
    action = tool.get("does")
    if action is None:
        chosen = own.pop("action")
        name, action = f"{name} {{action: {chosen}}}", tool["actions"][chosen]
    if isinstance(action, dict):
        own |= action["with"]
        action = action["call"]
    if " " in action:
        return await act(session, action, tool["next"], own)
    work = function_of(action)
    try:
        signature(work).bind(session, **own)
    except TypeError as error:
        raise Wrong(f"{name} {error}. Leave it out.") from None
    return await work(session, **own)


@cache
def _validator(name: str) -> Validator:
    return Validator({"properties": {"body": schema_of(name)}}, {})


def _check(name: str, own: Body) -> None:
    """Raises Wrong for arguments that a tool does not have, lacks, or that are of another type."""
    schema = schema_of(name)
    wrong = []
    for error in _validator(name).iter_errors({"body": own}):
        for each in details_of(error, lambda place: schema if place == ["body"] else {}):
            wrong.append(f"{each['field']}: {each['message']}")
    for argument, value in own.items():
        if isinstance(value, str) and len(value) > _LONGEST_TEXT:
            wrong.append(
                f"{argument} has {len(value):,} characters. Send at most {_LONGEST_TEXT:,}."
            )
    if wrong:
        raise Wrong(f"{name} does not take these arguments. {' '.join(wrong)}")


def server_of(session_of: Callable[[Context], Session]) -> Server[Any]:
    """The server whose tools work in the session of each request."""

    async def list_tools(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = [
            types.Tool(name=name, description=tool["description"], input_schema=schema_of(name))
            for name, tool in tools().items()
        ]
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        result = await call(session_of(context), params.name, params.arguments or {})
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=result.text)]
        return types.CallToolResult(
            content=content, structured_content=result.facts, is_error=result.is_error
        )

    return Server(
        "membership-sandbox",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
