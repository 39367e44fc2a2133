"""The contract as strangers read it, with fixed examples; a sandbox shows its records to those who
may read all.
"""

import json
import re
from functools import cache
from typing import Any

import pytest

from ..conftest import Serve
from ..support.contract import document, parsed, served
from ..support.live import Live
from ..support.wire import Answer, Door, Header
from .conftest import door_to

pytestmark = pytest.mark.check

FILES = ["/openapi.json", "/openapi.yaml"]
ADMIN = "a-long-admin-key"
FOREIGN = "https://editor.swagger.example"


@pytest.fixture(scope="module")
def public(serve: Serve) -> Live:
    """A server that others can reach."""
    # the test's server listens on loopback all the same
    return serve(host="0.0.0.0", admin_key=ADMIN)  # noqa: S104 - a setting: it listens on loopback


@pytest.fixture(scope="module")
def credentials(public: Live) -> Any:
    """Those of its sandbox."""
    door = Door(public.port, "", "")
    return door.ask("GET", "/_sandbox/credentials", headers=[("X-Sandbox-Admin-Key", ADMIN)]).json()


def is_fixed(answer: Answer) -> bool:
    """Whether the contract was served with its own examples."""
    assert 200 == answer.status, answer.body
    return _is_fixed(answer.body)


@cache
def _is_fixed(body: bytes) -> bool:
    return _addressed(parsed(body)) == _addressed(served())


def _addressed(contract: Any) -> str:
    """A contract without the address of the server and the sandbox, which it always has."""
    return re.sub(
        r"https?://[a-z0-9.-]+:\d+(/s/[a-z-]+)?", "…", json.dumps(contract, sort_keys=True)
    )


@pytest.mark.promise("strangers-see-no-live-example")
@pytest.mark.parametrize("path", FILES)
def test_a_public_server_shows_strangers_no_record(
    public: Live, credentials: Any, path: str
) -> None:
    """A public key identifies its merchant, and lets its holder wait at the server's cost."""
    door = Door(public.port, "", "")
    answer = door.ask("GET", path)
    assert is_fixed(answer)
    for wrong in ("x", credentials["public_key"], "sk_sandbox_wrong"):
        assert is_fixed(Door(public.port, "", wrong).ask("GET", path))
    for right in (credentials["private_key"], credentials["jwt"]):
        shown = Door(public.port, "", right).ask("GET", path)
        assert credentials["sample"]["orderId"] in shown.body.decode()
        assert answer.header("etag") != shown.header("etag")
        etag: list[Header] = [("If-None-Match", shown.header("etag") or "")]
        assert 304 == Door(public.port, "", right).ask("GET", path, headers=etag).status
        assert 200 == door.ask("GET", path, headers=etag).status
    for name, key in (("Admin", ADMIN), ("Control", credentials["control_key"])):
        assert not is_fixed(door.ask("GET", path, headers=[(f"X-Sandbox-{name}-Key", key)]))
        assert is_fixed(door.ask("GET", path, headers=[(f"X-Sandbox-{name}-Key", "wrong")]))


def test_a_page_of_an_operation_shows_strangers_the_examples_of_the_contract(
    public: Live, credentials: Any
) -> None:
    samples = [
        *credentials["sample"].values(),
        credentials["public_key"],
        credentials["private_key"],
    ]
    door = Door(public.port, "", "")
    order = document().raw["x-example-records"]["orderId"][0]
    for ending in ("", ".md"):
        for ident in ("getOrder", "createPixOrder", "getMerchantByPublicKey", "payOrder"):
            page = door.ask("GET", f"/docs/{ident}{ending}").body.decode()
            assert [] == [value for value in samples if value in page]
        assert order in door.ask("GET", f"/docs/getOrder{ending}").body.decode()


def test_a_page_of_this_server_and_a_named_one_with_a_credential_see_records(serve: Serve) -> None:
    door = door_to(serve(cors_origins=(FOREIGN,)))
    same: list[Header] = [("Origin", f"http://127.0.0.1:{door.port}")]
    assert not is_fixed(door.ask("GET", "/openapi.json", headers=same, token=None))
    named: list[Header] = [("Origin", FOREIGN)]
    assert is_fixed(door.ask("GET", "/openapi.json", headers=named, token=None))
    assert not is_fixed(door.ask("GET", "/openapi.json", headers=named))
    embedded: list[Header] = [("Sec-Fetch-Site", "cross-site")]
    assert is_fixed(door.ask("GET", "/openapi.json", headers=embedded, token=None))
