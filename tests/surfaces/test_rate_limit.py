"""A limit of requests by caller: what is left stands in every answer, and past it the
caller must wait.
"""

from collections.abc import Iterator

import httpx2
import pytest

from stub_server.contract.document import Document
from stub_server.core import windows

from ..conftest import Serve
from ..support.live import NO_TLS, Live
from ..support.shared import Shared

POLICY = '"default";q=3;w=60'


class Time:
    """The machine's clock, as a test sets it."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """A clock that stands still until it is moved."""
    made = Time()
    monkeypatch.setattr(windows, "monotonic", made)
    return made


@pytest.fixture(scope="module")
def server(serve: Serve) -> Live:
    """A server that answers three requests a minute."""
    return serve(rate_limit=(3, 60))


@pytest.fixture
def caller(server: Live, request: pytest.FixtureRequest) -> Iterator[httpx2.Client]:
    """Somebody who has not called yet."""
    headers = {"Authorization": f"Bearer {request.node.name}"}
    with httpx2.Client(base_url=server.url, headers=headers, verify=NO_TLS) as client:
        yield client


def left(answer: httpx2.Response) -> str:
    """What an answer says is left."""
    assert POLICY == answer.headers["RateLimit-Policy"]
    return answer.headers["RateLimit"]


def test_every_answer_says_what_is_left_until_none_is(caller: httpx2.Client, time: Time) -> None:
    """Refusals count too. The window begins with the first request and ends a minute later."""
    assert ['"default";r=2;t=60', '"default";r=1;t=60'] == [
        left(caller.get("/v2/plans")) for _ in range(2)
    ]
    time.now += 20.5
    assert '"default";r=0;t=40' == left(caller.get("/v2/nowhere"))
    over = caller.get("/v2/plans")
    assert (429, "rate_limited", "40") == (
        over.status_code,
        over.json()["code"],
        over.headers["Retry-After"],
    )
    assert '"default";r=0;t=40' == left(over)
    time.now += 39.5
    assert '"default";r=2;t=60' == left(caller.get("/v2/plans"))


def test_the_contract_of_a_limited_server_lists_429_where_it_can_come(
    server: Live, shared: Shared
) -> None:
    """Generated clients and contract tests then know it. The control surface has no limit."""
    for url, is_limited in ((server.url, True), (shared.live.url, False)):
        contract = Document(httpx2.get(f"{url}/openapi.json", verify=NO_TLS).json())
        assert {is_limited} == {
            429 in operation.responses for operation in contract.operations.values()
        }
    control = Document(httpx2.get(f"{server.url}/_sandbox/openapi.json", verify=NO_TLS).json())
    limited = {name for name, operation in control.operations.items() if 429 in operation.responses}
    assert {"exportSandbox", "followSandbox"} == limited


def test_callers_do_not_take_from_each_other(caller: httpx2.Client) -> None:
    """Another credential has a window of its own, and so has the same one in another sandbox."""
    for _ in range(4):
        spent = caller.get("/v2/plans")
    assert 429 == spent.status_code
    assert 401 == caller.get("/v2/plans", headers={"Authorization": "Bearer another"}).status_code
    assert 401 == caller.get("/s/elsewhere/v2/plans").status_code


def test_the_api_tells_its_limit(server: Live) -> None:
    """And null where there is none, as the contract's example shows."""
    key = httpx2.get(f"{server.url}/_sandbox/credentials", verify=NO_TLS).json()["public_key"]
    info = httpx2.get(
        f"{server.url}/api-keys/info", verify=NO_TLS, headers={"Authorization": f"Bearer {key}"}
    )
    assert {"requests": 3, "window_seconds": 60} == info.json()["info"]["limits"]["rate_limit"]
