"""Parts inside libraries that ours depend on: a release that changes one of them fails here, by its name."""

import hashlib
import inspect
import re
from importlib.metadata import requires
from types import FunctionType

import pytest
from uvicorn import Server
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ..support.processes import ROOT

PARTS = {
    HttpToolsProtocol.__init__: "4f0899941034",
    HttpToolsProtocol.connection_made: "6efb565ff3d3",
    HttpToolsProtocol.connection_lost: "c91a4c9bf2e2",
    HttpToolsProtocol.data_received: "010a7ae59a5d",
    HttpToolsProtocol.on_message_begin: "96d377fdc7c2",
    HttpToolsProtocol.on_headers_complete: "1ea8589acfad",
    HttpToolsProtocol.on_body: "dba9c32aeba3",
    HttpToolsProtocol.on_message_complete: "1fbad42dc31f",
    HttpToolsProtocol.on_response_complete: "64e254f28e38",
    HttpToolsProtocol.shutdown: "d7351fa33f00",
    RequestResponseCycle.__init__: "4d2f220910c3",
    RequestResponseCycle.run_asgi: "0f33f2449a44",
    RequestResponseCycle.send: "abdd8601b326",
    RequestResponseCycle.receive: "8124ae006be7",
    Server.handle_exit: "553276efa26e",
}
"""Functions that `http/protocol.py` and `serving.py` extend, and what their source hashes to."""
WHAT_TO_DO = "uvicorn's own part has changed: compare it with ours, then renew its digest here."


@pytest.mark.parametrize(("part", "digest"), PARTS.items(), ids=lambda value: getattr(value, "__qualname__", ""))
def test_uvicorns_part_is_the_one_that_ours_extends(part: FunctionType, digest: str) -> None:
    assert digest == hashlib.sha256(inspect.getsource(part).encode()).hexdigest()[:12], WHAT_TO_DO


def test_uvicorns_constants_are_there() -> None:
    assert b"HTTP/1.1 200 OK\r\n" == httptools_impl.STATUS_LINE[200]


@pytest.mark.parametrize("name", ["uvicorn"])
def test_their_patch_series_is_pinned_where_pip_reads_it(name: str) -> None:
    """Pip reads no constraints file for who installs the package."""
    (pin,) = [line for line in requires("membership-sandbox") or () if line.startswith(name) and "extra" not in line]
    assert "~=0." in pin
    assert pin.count(".") == 2


def test_the_base_of_the_image_is_pinned_by_its_digest() -> None:
    bases = re.findall(r"^FROM (?!scratch$)(\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert bases
    assert all(re.search("@sha256:[0-9a-f]{64}$", base) for base in bases)
