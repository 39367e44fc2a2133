"""docs/teams.md: the server for a team, and the Dockerfile's steps: done as they stand, without docker."""

import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from ..support.install import plain_env
from ..support.live import NO_TLS

pytestmark = pytest.mark.check

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "teams.md").read_text(encoding="utf-8")
ADMIN = "5f2a0c1e9b7d"  # in place of what the page has drawn
KEY = {"X-Sandbox-Admin-Key": ADMIN}


def shown(section: str) -> list[list[str]]:
    """The commands of a section's shell blocks, word by word."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def free_port() -> str:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@contextmanager
def started(command: Sequence[str], port: str, env: Mapping[str, str], folder: Path) -> Iterator[httpx2.Client]:
    """A client of what the command serves, until the block ends."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env, cwd=folder) as process:
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, verify=NO_TLS) as client:
                deadline = time.monotonic() + 60
                while True:
                    try:
                        client.get("/_sandbox/health")
                        break
                    except httpx2.TransportError:
                        assert process.poll() is None, "the command ended"
                        assert time.monotonic() < deadline
                        time.sleep(0.1)
                yield client
        finally:
            process.terminate()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_a_server_for_a_team_is_shut_but_to_its_admin_key(tmp_path: Path) -> None:
    draw, serve, make_world = shown("One server for a team")
    assert "STUB_ADMIN_KEY=$(openssl" in " ".join(draw)
    port = free_port()
    command = [sys.executable, "-m", "stub_server", *(("4600" == word and port) or word for word in serve[1:])]
    with started(command, port, plain_env() | {"STUB_ADMIN_KEY": ADMIN}, tmp_path) as client:
        address = "http://sandbox.example.com:4600"
        made = subprocess.run(
            [
                word.replace(address, str(client.base_url).rstrip("/")).replace("$STUB_ADMIN_KEY", ADMIN)
                for word in make_world
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )
        world = json.loads(made.stdout)["sandbox"]
        assert ("alice", f"{address}/s/alice") == (world["name"], world["base_url"])
        headers = {"Authorization": f"Bearer {world['credentials']['private_key']}"}
        assert client.get("/s/alice/v2/customers", headers=headers).status_code == 200
        assert client.get("/s/bob/v2/customers", headers=headers).status_code == 404
        assert client.get("/_sandbox/credentials").json()["code"] == "admin_key_required"
        assert client.get("/_sandbox/credentials", headers=KEY).status_code == 200
        assert client.get("/_sandbox/health").status_code == 200
