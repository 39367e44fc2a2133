"""How many sandboxes a server makes."""

from time import sleep

import httpx2
import pytest

from stub_server.server.sandboxes import creating as room

from ..conftest import Serve
from ..journeys.steps import refused
from ..support.live import NO_TLS
from ..support.make import created


@pytest.mark.promise("sandboxes")
def test_past_the_limit_the_longest_unused_mention_makes_room(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were asked for stay; when only such are left, the next one is refused
    with the limit.
    """
    monkeypatch.setattr(room, "MOST", 5)
    server = serve(seed=11)
    with httpx2.Client(base_url=f"{server.url}/_sandbox", timeout=30, verify=NO_TLS) as sandboxes:

        def make(name: str) -> None:
            created(sandboxes.post("/sandboxes", json={"name": name}))

        def mention(name: str) -> int:
            sleep(0.01)  # uses are told apart by milliseconds
            return httpx2.get(
                f"{server.url}/s/{name}/_sandbox/credentials", verify=NO_TLS
            ).status_code

        make("asked")
        assert [200] * 4 == [mention(name) for name in ("m-one", "m-two", "m-three", "m-one")]
        assert [200] * 2 == [mention(name) for name in ("m-four", "m-five")]
        names = [sandbox["name"] for sandbox in sandboxes.get("/sandboxes").json()["sandboxes"]]
        assert ["asked", "default", "m-five", "m-four", "m-one"] == sorted(names)
        for name in ("a", "b", "c"):
            make(name)
        refusal = sandboxes.post("/sandboxes", json={"name": "d"})
        refused(refusal, 409, "too_many_sandboxes")
        assert "There are 5 sandboxes" in refusal.json()["message"]
        refused(sandboxes.post("/sandboxes/a/fork"), 409, "too_many_sandboxes")
        assert 404 == mention("m-six")
        assert 204 == sandboxes.delete("/sandboxes/a").status_code
        make("d")
