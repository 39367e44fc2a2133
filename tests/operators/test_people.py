"""People of a team: what an invitation has works as it stands, and who has left opens nothing."""

import json
import re
import shlex
import subprocess
import sys

import httpx2
import pytest

from ..conftest import Serve
from ..support.install import plain_env
from ..support.live import NO_TLS, Live

pytestmark = [pytest.mark.check, pytest.mark.turn]
ADMIN = "a-long-admin-key"


@pytest.fixture
def team(serve: Serve) -> Live:
    """A public server, whose address is that of the test."""
    return serve(admin_key=ADMIN, seed=83)


def command(*words: str, **variables: str) -> str:
    """What `stub-server` prints, run with environment variables."""
    done = subprocess.run(
        [sys.executable, "-m", "stub_server", *words],
        env=plain_env() | variables, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return done.stdout


def admin(team: Live, *words: str) -> str:
    """What a verb prints with the admin key."""
    return command(*words, STUB_SERVER=team.url, STUB_ADMIN_KEY=ADMIN)


def status(invitation: str, address: str) -> tuple[int, int, int]:
    """How the token, the API key and the control key of an invitation are answered."""
    told = dict(re.findall(r"^  (\w+(?: \w+)?)  +(\S+)$", invitation, re.M))
    token, key, control = told["token"], told["API key"], told["control key"]
    tried = [
        (f"{address}/v2/customers", {"Authorization": f"Bearer {word}"}) for word in (token, key)
    ]
    tried.append((f"{address}/_sandbox/clock", {"X-Sandbox-Control-Key": control}))
    first, second, third = (
        httpx2.get(url, headers=sent, verify=NO_TLS).status_code for url, sent in tried
    )
    return first, second, third


def test_an_invitation_opens_one_sandbox_until_its_user_leaves(team: Live) -> None:
    invitation = admin(team, "sandboxes", "invite", "alice")
    address = f"{team.url}/s/alice"
    assert f"  address      {address}\n" in invitation.replace(team.settings.url, team.url)
    assert (200, 200, 200) == status(invitation, address)
    (curl,) = re.findall(r"^  curl .*$", invitation, re.M)
    exports = dict(re.findall(r"(STUB_\w+)=(\S+)", invitation))
    assert {"STUB_SERVER", "STUB_SANDBOX", "STUB_CONTROL_KEY"} == exports.keys()
    exports["STUB_SERVER"] = team.url
    pasted = shlex.split(curl.replace(team.settings.url, team.url))
    said = subprocess.run(pasted, capture_output=True, timeout=60)
    assert json.loads(said.stdout)["customers"]
    assert "There are no such faults." in command("faults", "list", **exports)
    again = admin(team, "sandboxes", "invite", "alice")
    assert (200, 200, 200) == status(again, address)
    table = admin(team, "sandboxes", "list").splitlines()
    assert "LAST_USED_AT" in table[0].split()
    (row,) = [line for line in table if line.startswith("alice ")]
    assert row.split()[1].startswith("20")
    assert "alice has new credentials" in admin(team, "sandboxes", "rotate", "alice", "--keys")
    assert (401, 401, 403) == status(invitation, address) == status(again, address)
    assert (200, 200, 200) == status(admin(team, "sandboxes", "invite", "alice"), address)
    assert "alice is deleted.\n" == admin(team, "sandboxes", "delete", "alice")
    assert (404, 404, 403) == status(invitation, address)
