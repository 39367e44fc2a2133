"""One sandbox for all the tests here that change nothing, or nothing that another test would see."""

import httpx2
import pytest

from ..support.live import NO_TLS, Live
from ..support.make import make_customer
from ..support.shared import Shared
from ..support.wire import Door


def door_to(server: Live, sandbox: str = "surfaces") -> Door:
    """A door with the token that the server itself hands out."""
    answer = httpx2.get(f"{server.url}/s/{sandbox}/_sandbox/credentials", timeout=30, verify=NO_TLS)
    assert answer.status_code == 200, answer.text
    jwt: str = answer.json()["jwt"]
    return Door(server.port, f"/s/{sandbox}", jwt)


@pytest.fixture(scope="session")
def door(shared: Shared) -> Door:
    """The shared server's sandbox `surfaces`."""
    return door_to(shared.live)


@pytest.fixture(scope="session")
def customer_id(door: Door) -> str:
    """A customer to read and change."""
    headers = {"Authorization": f"Bearer {door.token}"}
    with httpx2.Client(base_url=f"http://127.0.0.1:{door.port}{door.prefix}", headers=headers, verify=NO_TLS) as client:
        made: str = make_customer(client)["id"]
        return made
