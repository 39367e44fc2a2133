"""A large sandbox is being created on one of two servers: both say how far it is, and serve all else meanwhile."""

import httpx2
import pytest

from ..support.live import NO_TLS
from .conftest import Pair

pytestmark = pytest.mark.check


def test_it_is_asked_for_at_any_server_which_serve_others_meanwhile(pair: Pair) -> None:
    with (
        httpx2.Client(base_url=pair.other.url, timeout=60, verify=NO_TLS) as here,
        httpx2.Client(base_url=pair.holder.url, timeout=60, verify=NO_TLS) as there,
    ):
        answer = here.post(
            "/_sandbox/sandboxes", json={"name": "large", "scenario": "busy"}, headers={"Prefer": "respond-async"}
        )
        assert 202 == answer.status_code, answer.text
        where = answer.headers["Location"]
        assert "large" == there.get(where).json()["creation"]["name"]
        token = {"Authorization": f"Bearer {pair.token}"}
        assert 200 == here.get("/s/team/v2/customers", headers=token).status_code  # which the first server has
        assert 201 == here.post("/_sandbox/sandboxes", json={"name": "small"}).status_code
        for client in (here, there):
            assert 202 == client.get(where).status_code, "all waited until it was ready"
