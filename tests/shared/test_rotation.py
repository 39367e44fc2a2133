"""Several servers, one of which rotates a sandbox: the others know its old credentials no more."""

from contextlib import ExitStack

import httpx2
import pytest

from ..support.live import NO_TLS
from ..support.make import created
from ..support.postgres import Postgres
from ..support.processes import PATIENCE, Process
from .conftest import FLAGS

pytestmark = [pytest.mark.check, pytest.mark.turn]
ADMIN = {"X-Sandbox-Admin-Key": "a-long-admin-key"}


def status(server: Process, credential: str, prefix: str = "") -> int:
    """What a credential gets, which names its sandbox itself without a prefix."""
    bearer = {"Authorization": f"Bearer {credential}"}
    path = f"{server.url}{prefix}/v2/customers?limit=1"
    return httpx2.get(path, headers=bearer, verify=NO_TLS, timeout=PATIENCE).status_code


@pytest.mark.promise("rotation-one-several-servers-holds")
def test_a_rotation_on_one_server_holds_on_all(postgres: Postgres) -> None:
    """Whichever one is asked for it, also once the server that had the sandbox is gone."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        flags = ("--store", url, *FLAGS, "--admin-key", ADMIN["X-Sandbox-Admin-Key"])
        holder, other = (stack.enter_context(Process(*flags)) for _ in range(2))
        control = f"{holder.url}/_sandbox/sandboxes"
        made = created(
            httpx2.post(
                control, json={"name": "team"}, headers=ADMIN, verify=NO_TLS, timeout=PATIENCE
            )
        )
        before = made["sandbox"]["credentials"]
        given = [before["jwt"], before["private_key"]]
        assert [200] * 4 == [status(server, each) for server in (holder, other) for each in given]
        key = {"X-Sandbox-Control-Key": before["control_key"]}
        path = "/_sandbox/sandboxes/team/rotate"
        rotated = httpx2.post(other.url + path, headers=key, verify=NO_TLS, timeout=PATIENCE)
        assert 200 == rotated.status_code, rotated.text
        after = rotated.json()["sandbox"]["credentials"]
        taken = [after["jwt"], after["private_key"]]
        for server in (holder, other):
            assert [401] * 4 == [
                status(server, each, prefix) for each in given for prefix in ("", "/s/team")
            ]
            assert [200] * 4 == [
                status(server, each, prefix) for each in taken for prefix in ("", "/s/team")
            ]
            assert (
                403
                == httpx2.post(
                    server.url + path, headers=key, verify=NO_TLS, timeout=PATIENCE
                ).status_code
            )
        holder.stop()
        assert [401, 401, 200, 200] == [status(other, each) for each in (*given, *taken)]
