"""What docs/deploy starts servers with: the unit of systemd, the Compose file and the image."""

import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from stub_server.cli.command import main

from ..support.install import plain_env
from ..support.live import NO_TLS
from ..support.processes import free_port

pytestmark = [pytest.mark.check, pytest.mark.turn]
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
UNIT = DEPLOY / "membership-sandbox.service"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
KNOWN = {f"STUB_{option.name}".upper() for option in main.commands["serve"].params}


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """What a command prints, which must succeed."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, env=plain_env()
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


# -- systemd


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_no_fault_in_the_unit_and_calls_it_safe(tmp_path: Path) -> None:
    text = UNIT.read_text(encoding="utf-8")
    command = "/opt/membership-sandbox/bin/stub-server"
    here = Path(sys.executable).with_name("stub-server")
    assert here.exists()
    (tmp_path / UNIT.name).write_text(text.replace(command, str(here)), encoding="utf-8")
    assert "" == run("systemd-analyze", "verify", tmp_path / UNIT.name)
    run("systemd-analyze", "security", "--offline=true", "--threshold=20", tmp_path / UNIT.name)
    assert set(re.findall(r"STUB_\w+", text)) <= KNOWN


# -- Compose

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
SERVERS = {
    name: service for name, service in SERVICES.items() if service["image"] == "membership-sandbox"
}


def test_the_compose_file_keeps_its_schema() -> None:
    file = DEPLOY / "compose.yaml"
    run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", file)


def test_its_proxy_has_the_caddyfile_and_knows_every_server_at_its_port() -> None:
    (port,) = re.findall(r"^EXPOSE (\d+)", DOCKERFILE, re.MULTILINE)
    proxy = SERVICES["proxy"]
    assert 2 == len(SERVERS)
    assert proxy["environment"]["SANDBOX_SERVERS"].split() == [f"{name}:{port}" for name in SERVERS]
    variables = set(re.findall(r"\{\$(\w+):", (DEPLOY / "Caddyfile").read_text(encoding="utf-8")))
    assert variables == proxy["environment"].keys()
    source, inside, mode = proxy["volumes"][0].split(":")
    assert ((DEPLOY / source).exists(), inside, mode) == (True, "/etc/caddy/Caddyfile", "ro")


def test_its_servers_have_settings_that_exist_no_rights_and_the_driver() -> None:
    for service in SERVERS.values():
        assert service["environment"].keys() <= KNOWN
        assert (True, ["ALL"]) == (service["read_only"], service["cap_drop"])
        assert DOCKERFILE == (DEPLOY / service["build"] / "Dockerfile").read_text(encoding="utf-8")
    assert "'.[mcp,postgresql]'" in DOCKERFILE
    database = SERVICES["database"]["environment"]
    address = SERVICES["sandbox-1"]["environment"]["STUB_STORE"]
    user, password, name = (database[f"POSTGRES_{part}"] for part in ("USER", "PASSWORD", "DB"))
    assert f"postgresql://{user}:{password}@database/{name}" == address


# -- the image

ENTER = """
import os, sys
root, uid, *command = sys.argv[1:]
os.chroot(root)
os.chdir("/home/sandbox")
os.setgroups([])
os.setgid(int(uid))
os.setuid(int(uid))
os.execv(command[0], command)
"""
"""Runs a command as a container does: in its own root, as its user."""


def steps() -> list[str]:
    """The commands of the Dockerfile's build stage."""
    text = re.sub(r"\\\n", " ", DOCKERFILE)
    return [
        command.strip()
        for line in re.findall(r"^RUN (.*)$", text, re.MULTILINE)
        for command in line.split("&&")
    ]


@pytest.mark.night
@pytest.mark.skipif(os.getuid() != 0, reason="only root can enter another root directory")
@pytest.mark.skipif(shutil.which("strip") is None, reason="binutils are not installed")
def test_the_image_is_small_and_serves_as_a_user_who_can_write_nowhere(tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    for line in re.findall(r"^COPY ((?!--from).*)$", DOCKERFILE, re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            whole = ROOT / source
            place = app / target / whole.name if target.endswith("/") else app / target
            (shutil.copytree if whole.is_dir() else shutil.copy)(whole, place)
    for command in steps():
        if not command.startswith("apt-get"):
            made = ["sh", "-c", command.replace("python -m venv", f"{sys.executable} -m venv")]
            subprocess.run(made, cwd=app, check=True, timeout=600, env=plain_env())
    root = app / "rootfs"
    files = [path for path in root.rglob("*") if not path.is_symlink()]
    assert sum(path.stat().st_size for path in files if path.is_file()) < 150_000_000
    for name in ("sh", "bash", "dash", "pip", "pip3", "apt", "apt-get"):
        assert [] == [path for path in files if path.name == name and path.is_file()], name
    assert {root / "tmp"} == {path for path in files if path.stat().st_mode & stat.S_IWOTH}
    assert [] == [path for path in files if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)]
    (uid,) = re.findall(r"--chown=(\d+):", DOCKERFILE)
    assert f"sandbox:x:{uid}:{uid}:" in (root / "etc" / "passwd").read_text()
    home = root / "home" / "sandbox"
    home.mkdir(parents=True)
    (root / "tmp").chmod(0o755)  # a read-only root: nothing is written there either
    port = str(free_port())
    server_command = [
        sys.executable,
        "-c",
        ENTER,
        str(root),
        uid,
        str(app / "env" / "bin" / "python"),
        "-m",
        "stub_server",
    ]
    everywhere = "0.0.0.0"  # noqa: S104 - as the image
    server_command += ["--host", everywhere, "--port", port, "--admin-key", "a-long-admin-key"]
    with subprocess.Popen(server_command, env=plain_env(), stdout=subprocess.DEVNULL) as server:
        try:
            until_it_answers(f"http://127.0.0.1:{port}/_sandbox/health", server)
            page = httpx2.get(
                f"http://127.0.0.1:{port}/docs", verify=NO_TLS, timeout=60, follow_redirects=True
            )
            assert 200 == page.status_code
        finally:
            server.terminate()


def until_it_answers(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            assert 200 == httpx2.get(url, verify=NO_TLS, timeout=30).status_code
            return
        except httpx2.TransportError:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline
            time.sleep(0.1)
