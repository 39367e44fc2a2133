"""One world for all tests of lists: they read it and change nothing."""

from collections.abc import Iterator

import httpx2
import pytest

from ..support.live import NO_TLS
from ..support.make import Json
from ..support.shared import Shared
from .reading import Reader
from .world import Builder

WORLD = "lists"


@pytest.fixture(scope="session")
def reader(shared: Shared, sink: str) -> Iterator[Reader]:
    """The lists of a busy world."""
    live = shared.live
    base = f"{live.url}/s/{WORLD}"
    with httpx2.Client(base_url=f"{base}/_sandbox", timeout=60, verify=NO_TLS) as control:
        credentials: Json = control.get("/credentials").json()
        headers = {"Authorization": f"Bearer {credentials['jwt']}"}
        with httpx2.Client(base_url=base, headers=headers, timeout=60, verify=NO_TLS) as api:
            Builder(api, control, sink).fill()
            yield Reader(api, control)
    live.app.sandboxes.forget(WORLD)
