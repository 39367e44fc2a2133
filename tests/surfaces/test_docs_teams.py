"""docs/teams.md: the server for a team, and the Dockerfile's steps: done as they stand, without docker."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from ..support.install import plain_env, run
from ..support.live import NO_TLS

pytestmark = pytest.mark.check

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "teams.md").read_text(encoding="utf-8")
CHROOT = shutil.which("chroot", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or ""
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0 and bool(CHROOT)
LARGEST = 143_000_000  # bytes; what this machine's own Python adds or lacks is in the remainder to 150 MB
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


def instructions(text: str) -> list[tuple[str, str]]:
    """A Dockerfile's instructions, comments and continued lines resolved."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines.splitlines() if line.strip()]


class Container:
    """A folder and an environment in which the steps of a Dockerfile are done.

    `root` stands for `/` of the first stage, `image` for that of the second: the paths of the one exist in the other.
    """

    def __init__(self, folder: Path) -> None:
        self.root, self.folder, self.image = folder / "root", folder / "root", folder
        tools = folder / "tools"
        tools.mkdir()
        self.root.mkdir()
        # A package would be installed on this machine.
        for name, does in (("apt-get", "true"), ("python", f'exec "{sys.executable}" "$@"')):
            (tools / name).write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
            (tools / name).chmod(0o755)
        self.env = plain_env() | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
        self.entrypoint: list[str] = []
        self.healthcheck: list[str] = []
        self.exposed = self.user = ""

    def step(self, instruction: str, text: str) -> None:
        """One instruction; one that is not known fails."""
        match instruction:
            case "FROM":
                assert text == "scratch" or re.fullmatch(r"python:3\.\S+ AS build", text)
            case "WORKDIR":
                self.folder = self.root / text.lstrip("/")
                self.folder.mkdir(parents=True, exist_ok=True)
            case "COPY" if text.startswith("--from=build "):
                *_, source, target = text.split()
                if target == "/":
                    self.image = self.inside(source)
                else:
                    (owner,) = re.findall(r"--chown=(\d+:\d+) ", text)
                    shutil.copytree(self.inside(source), self.image / target.lstrip("/"))
                    subprocess.run(["chown", "-R", owner, self.image / target.lstrip("/")], check=IS_ROOT)
            case "COPY":
                *sources, target = text.split()
                for source in sources:
                    place = self.folder / target if target != "./" else self.folder / Path(source).name
                    if (ROOT / source).is_dir():
                        shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
                    else:
                        shutil.copy(ROOT / source, place)
            case "RUN":
                run(["sh", "-ec", text], self.folder, self.env)
            case "ENV":
                self.env |= dict(pair.split("=", 1) for pair in shlex.split(text))
            case "EXPOSE":
                self.exposed = text
            case "USER":
                (self.user,) = re.findall(rf"^{text}:x:(\d+:\d+):", (self.image / "etc" / "passwd").read_text())
            case "ENTRYPOINT":
                self.entrypoint = json.loads(text)
            case "HEALTHCHECK":
                self.healthcheck = json.loads(text.partition("CMD ")[2])
            case _:
                raise AssertionError(f"what is {instruction}?")

    def inside(self, path: str) -> Path:
        """A path of the first stage."""
        return self.root / path.lstrip("/")

    def command(self, words: list[str]) -> list[str]:
        """A command as it runs in the image, by the image's user, if this user may do that."""
        program = str(self.inside(self.env["PATH"]) / words[0])
        return [*([CHROOT, f"--userspec={self.user}", str(self.image)] if IS_ROOT else []), program, *words[1:]]

    def size(self) -> int:
        """Bytes of the image, without the byte code of the standard library, which this machine may have whole."""
        library = self.image / sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}).lstrip("/")
        return sum(
            path.lstat().st_size
            for path in self.image.rglob("*")
            if path.is_file() and not (path.is_relative_to(library) and path.suffix == ".pyc")
        )


@pytest.mark.night
@pytest.mark.skipif(not (shutil.which("strip") and shutil.which("ldd")), reason="the image is made with binutils")
def test_the_steps_of_the_dockerfile_make_a_small_image_that_is_healthy_and_shut(tmp_path: Path) -> None:
    build, start = shown("Docker")
    assert ["docker", "build", "-t", start[-1], "."] == build
    container = Container(tmp_path)
    for instruction, text in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        container.step(instruction, text)
    assert f"{container.exposed}:{container.env['STUB_PORT']}" == start[start.index("-p") + 1]
    assert len([*container.image.rglob("site-packages/stub_server/contract/__pycache__/contract.json")]) == 1
    assert container.size() < LARGEST
    assert [] == [name for name in ("pip", "sh", "apt") if [*container.image.rglob(f"bin/{name}")]]
    # The port of the container is its own; here it is one of this machine's.
    key, _, value = start[start.index("-e") + 1].partition("=")
    container.env |= {key: value, "STUB_PORT": free_port()}
    if IS_ROOT:
        container.env["STUB_STORE"] = "/home/sandbox/store"
    command = container.command(container.entrypoint)
    with started(command, container.env["STUB_PORT"], container.env, tmp_path) as client:
        run(container.command(container.healthcheck), tmp_path, container.env)
        assert client.get("/_sandbox/credentials").status_code == 403
        me = client.get("/_sandbox/credentials", headers=KEY).json()
        headers = {"Authorization": f"Bearer {me['jwt']}"}
        assert len(client.get("/v2/customers?limit=2", headers=headers).json()["customers"]) == 2
        for page in ("/", "/static/console.js", "/favicon.ico", "/openapi.yaml"):
            assert client.get(page).status_code == 200, page
        if IS_ROOT:
            assert "10001" == str((container.image / "home" / "sandbox" / "store").stat().st_uid)
