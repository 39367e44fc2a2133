"""What ours must not use of libraries, and what must be pinned."""

import ast
import asyncio
import inspect
import re

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from stub_server.server.protocol import HttpProtocol
from stub_server.server.reply import Connection

from ..support.processes import ROOT

CALLED_BY_OTHERS = {
    "__init__", "connection_made", "connection_lost", "data_received",
    "on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_chunk_complete",
    "on_message_complete",
}  # fmt: skip
"""Methods that asyncio and httptools call by these names, whatever uvicorn does in them."""


def test_the_protocol_knows_nothing_of_uvicorns_but_what_asyncio_and_httptools_call() -> None:
    """It reads no attribute of uvicorn's class, and has none that would take the place of one."""
    used = set[str]()
    inherited = set[str]()
    for node in ast.walk(
        ast.parse(inspect.getsource(HttpProtocol) + inspect.getsource(Connection))
    ):
        if isinstance(node, ast.Attribute):
            place = ast.unparse(node.value)
            (used if place == "self" else inherited if place == "super()" else set()).add(node.attr)

    async def theirs() -> set[str]:
        config = Config(lambda: None, ws="none")
        one = HttpToolsProtocol(config=config, server_state=ServerState(), app_state={})
        return {*dir(one), *vars(one)}

    own = {
        name for kind in (HttpProtocol, Connection) for name in (*vars(kind), *kind.__annotations__)
    }
    assert set() == inherited - CALLED_BY_OTHERS
    assert set() == used - own
    of_any_class = {
        *vars(type("Plain", (), {})),
        "__annotations__",
        "__firstlineno__",
        "__static_attributes__",
    }
    assert of_any_class >= own & asyncio.run(theirs()) - CALLED_BY_OTHERS


def test_the_base_of_the_image_is_pinned_by_its_digest() -> None:
    bases = re.findall(
        r"^FROM (?!scratch$)(\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert bases
    assert all(re.search("@sha256:[0-9a-f]{64}$", base) for base in bases)


def test_a_connection_to_sqlite_gets_all_but_its_file_by_name() -> None:
    """Python 3.13 warns of anything else, and 3.15 refuses it."""
    for file in (ROOT / "stub_server").rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "sqlite3.connect":
                assert 1 == len(call.args), f"{file}:{call.lineno}"
