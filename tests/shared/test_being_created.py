"""A large sandbox is being created on one of two servers: both say how far it is, and serve all
else meanwhile.
"""

import httpx2
import psycopg
import pytest

from ..support.live import NO_TLS
from .conftest import Pair

pytestmark = pytest.mark.check
ASYNC = {"Prefer": "respond-async"}
EMPTY = {"name": "small-too", "scenario": "empty"}


def test_it_is_asked_for_at_any_server_which_serve_others_meanwhile(pair: Pair) -> None:
    with (
        httpx2.Client(base_url=pair.other.url, timeout=60, verify=NO_TLS) as here,
        httpx2.Client(base_url=pair.holder.url, timeout=60, verify=NO_TLS) as there,
    ):
        answer = here.post(
            "/_sandbox/sandboxes", json={"name": "large", "scenario": "busy"}, headers=ASYNC
        )
        assert 202 == answer.status_code, answer.text
        where = answer.headers["Location"]
        assert "large" == there.get(where).json()["creation"]["name"]
        token = {"Authorization": f"Bearer {pair.token}"}
        # which the first server has
        assert 200 == here.get("/s/team/v2/customers", headers=token).status_code
        assert 201 == here.post("/_sandbox/sandboxes", json={"name": "small"}).status_code
        for client in (here, there):
            assert 202 == client.get(where).status_code, "all waited until it was ready"


def test_what_was_announced_is_taken_back_when_it_is_done(pair: Pair) -> None:
    with httpx2.Client(base_url=pair.other.url, timeout=60, verify=NO_TLS) as here:
        answer = here.post("/_sandbox/sandboxes", json=EMPTY, headers=ASYNC)
        while answer.status_code == 202:
            answer = here.get("/_sandbox/sandboxes/small-too")
        assert answer.status_code in (200, 201), answer.text
        with psycopg.connect(pair.database) as connection:
            assert (
                []
                == connection.execute(
                    "select holder from creations where name = %s", [EMPTY["name"]]
                ).fetchall()
            )
