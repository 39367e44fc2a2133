"""The tools over standard input and output, for editors that start a command: they ask a server
over HTTP.
"""

from collections.abc import Mapping
from urllib.parse import quote

import httpx2
from mcp.server.stdio import stdio_server

from ...core.text import SAFE_IN_PATHS
from ...server.layers.inside import Question, Reply
from ...testing.server import authorities
from .session import Ask, Session
from .tools import server_of

_PATIENCE = 60.0  # seconds: a certification takes up to half of them


async def serve(url: str, keys: Mapping[str, str], sandbox: str | None) -> None:
    """Serve one client until it closes standard input.

    `keys` are headers that open the controls.
    """
    async with httpx2.AsyncClient(
        timeout=_PATIENCE, verify=authorities(url), trust_env=not url.startswith("http://")
    ) as client:
        session = Session(_asking(client, url.rstrip("/")), keys, sandbox)
        server = server_of(lambda context: session)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


def _asking(client: httpx2.AsyncClient, url: str) -> Ask:
    async def ask(question: Question) -> Reply:
        method, path, query, headers, body, _ = question
        address = url + quote(path, safe=SAFE_IN_PATHS)
        if query:
            address += f"?{query}"
        try:
            response = await client.request(method, address, content=body, headers=dict(headers))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return Reply(
                0, {}, f"no server answers at {url} ({error}). Start one with stub-server.".encode()
            )
        return Reply(response.status_code, response.headers, response.content)

    return ask
