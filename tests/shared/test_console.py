"""The console at a server that does not have the sandbox: its pages are those of the one that has it."""

from contextlib import closing

import httpx2
import pytest

from ..support.console import Console
from ..support.live import NO_TLS
from .conftest import Pair

pytestmark = pytest.mark.check


def test_pages_forms_and_streams_are_those_of_the_holder(pair: Pair) -> None:
    base = f"http://127.0.0.1:{pair.other.port}"
    headers = {"Authorization": f"Bearer {pair.token}"}
    with closing(Console(base, "team")) as console:
        httpx2.get(f"{console.base}/v2/plans?limit=7", headers=headers, verify=NO_TLS)
        page = console.open("/console/requests")
        assert "/v2/plans ?limit=7" in page.text
        made = console.send(console.open("/console/data/projects/new/createProject"), "Send")
        assert "Create a project : done." in made.text
        undone = console.send(made, "Undo")
        assert "Rewind a sandbox : done." in undone.text
        assert "/v2/plans" in console.open("/console/requests.har").response.text
        with httpx2.stream("GET", f"{console.base}/console/stream", verify=NO_TLS) as stream:
            assert 200 == stream.status_code
            assert next(stream.iter_text()).startswith("retry:")
        cleared = console.send(console.open("/console/requests"), "Forget all")
        assert "Delete all requests : done." in cleared.text
