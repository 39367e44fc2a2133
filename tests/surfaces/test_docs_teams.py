"""docs/teams.md: the server for a team, and the Dockerfile's steps: done as they stand, without docker."""

import json
import os
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

pytestmark = pytest.mark.check

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "teams.md").read_text(encoding="utf-8")
KEY = {"X-Sandbox-Admin-Key": "change-me"}
_UNREACHABLE = re.compile(r"NewConnectionError|ConnectTimeoutError|name resolution|Connection refused")


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
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
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


def plain_env() -> dict[str, str]:
    """The environment without settings of a server."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("STUB_", "PYTHON"))}


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_a_server_for_a_team_is_shut_but_to_its_admin_key(tmp_path: Path) -> None:
    serve, make_world = shown("One server for a team")
    port = free_port()
    command = [sys.executable, "-m", "stub_server", *(("4600" == word and port) or word for word in serve[1:])]
    with started(command, port, plain_env(), tmp_path) as client:
        address = "http://sandbox.example.com:4600"
        made = subprocess.run(
            [word.replace(address, str(client.base_url).rstrip("/")) for word in make_world],
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


def instructions(text: str) -> list[tuple[str, str]]:
    """A Dockerfile's instructions, comments and continued lines resolved."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines.splitlines() if line.strip()]


class Container:
    """A folder and an environment in which the steps of a Dockerfile are done."""

    def __init__(self, folder: Path) -> None:
        self.root, self.folder = folder / "root", folder / "root"
        tools = folder / "tools"
        tools.mkdir()
        # Adding a user is the image's own affair: here it would be added to this machine.
        (tools / "useradd").write_text(f'#!/bin/sh\necho "$@" > "{folder}/users"\n', encoding="utf-8")
        (tools / "useradd").chmod(0o755)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "python")], check=True, timeout=120)
        self.bin = folder / "python" / "bin"
        self.env = plain_env() | {"PATH": f"{tools}{os.pathsep}{self.bin}{os.pathsep}{os.environ['PATH']}"}
        self.entrypoint: list[str] = []
        self.healthcheck: list[str] = []
        self.exposed = ""
        self.users = folder / "users"

    def step(self, instruction: str, text: str) -> None:
        """One instruction; one that is not known fails."""
        match instruction:
            case "FROM":
                assert text.startswith("python:3.")
            case "WORKDIR":
                self.folder = self.root / text.lstrip("/")
                self.folder.mkdir(parents=True, exist_ok=True)
            case "COPY":
                *sources, target = text.split()
                for source in sources:
                    place = self.folder / target if target != "./" else self.folder / source
                    if (ROOT / source).is_dir():
                        shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
                    else:
                        shutil.copy(ROOT / source, place)
            case "RUN":
                self.run(["sh", "-ec", text])
            case "ENV":
                self.env |= dict(pair.split("=", 1) for pair in shlex.split(text))
            case "EXPOSE":
                self.exposed = text
            case "USER":
                assert text in self.users.read_text(encoding="utf-8").split()
            case "ENTRYPOINT":
                self.entrypoint = json.loads(text)
            case "HEALTHCHECK":
                self.healthcheck = json.loads(text.partition("CMD ")[2])
            case _:
                raise AssertionError(f"what is {instruction}?")

    def run(self, command: list[str]) -> None:
        """A command that must succeed; what it lacks of the network skips the test."""
        ran = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=400)
        if ran.returncode and (found := _UNREACHABLE.search(ran.stderr)):
            pytest.skip(f"pip cannot reach its registry ({found[0]}): the Dockerfile's steps were not done")
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_steps_of_the_dockerfile_make_a_server_that_is_healthy_and_shut(tmp_path: Path) -> None:
    build, run = shown("Docker")
    assert ["docker", "build", "-t", run[-1], "."] == build
    container = Container(tmp_path)
    container.env["PIP_NO_COMPILE"] = "1"  # what is imported is compiled then
    for instruction, text in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        container.step(instruction, text)
    assert f"{container.exposed}:{container.env['STUB_PORT']}" == run[run.index("-p") + 1]
    assert len([*tmp_path.rglob("site-packages/stub_server/contract/__pycache__/contract.json")]) == 1
    # The port of the container is its own; here it is one of this machine's.
    key, _, value = run[run.index("-e") + 1].partition("=")
    container.env |= {key: value, "STUB_PORT": free_port()}
    command = [str(container.bin / container.entrypoint[0]), *container.entrypoint[1:]]
    with started(command, container.env["STUB_PORT"], container.env, container.folder) as client:
        container.run(container.healthcheck)
        assert client.get("/_sandbox/credentials").status_code == 403
        me = client.get("/_sandbox/credentials", headers=KEY).json()
        headers = {"Authorization": f"Bearer {me['jwt']}"}
        assert len(client.get("/v2/customers?limit=2", headers=headers).json()["customers"]) == 2
        for page in ("/", "/static/console.js", "/favicon.ico", "/openapi.yaml"):
            assert client.get(page).status_code == 200, page
