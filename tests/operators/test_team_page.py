"""docs/teams.md: every block of it is run, in its order, on a machine where nothing
was installed.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from ..support.live import NO_TLS
from .machine import ROOT, Machine
from .proxies import NGINX

pytestmark = [pytest.mark.check, pytest.mark.turn]
PAGE = (ROOT / "docs" / "teams.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^## (.*)\n|^```sh\n((?:.*\n)*?)```", PAGE, re.MULTILINE)
ELSEWHERE = ("Docker",)  # its files are tried in test_deploy_files.py
TOOLS = ("bash", "curl", "openssl", "promtool", "prometheus")


def sections() -> Iterator[tuple[str, str]]:
    """Each block of the page, under the heading that it stands under."""
    heading = ""
    for title, block in BLOCKS:
        heading = title or heading
        if block and heading not in ELSEWHERE:
            yield heading, block


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    try:
        yield machine
    finally:
        machine.stop()


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
@pytest.mark.skipif(None in map(shutil.which, TOOLS), reason=f"the page uses {', '.join(TOOLS)}")
def test_the_page_is_followed_from_the_installation_to_the_leaver(
    machine: Machine, request: pytest.FixtureRequest
) -> None:
    said = dict[str, list[str]]()
    is_night = request.config.getoption("--night")
    for heading, block in sections():
        if heading in ("Install", "Upgrade") and not is_night:  # they take a minute each
            block = block.replace("python3 -m venv", "mkdir -p")
            block = re.sub(r"^/opt\S+/pip.*$", link_of(machine), block, flags=re.MULTILINE)
        before = machine.variables.get("STUB_ADMIN_KEY")
        said.setdefault(heading, []).append(machine.run(block))
        if heading == "Invite":
            key = re.findall(r"API key +(\S+)", said["Invite"][0])[0]
            headers = {"Authorization": f"Bearer {key}"}
            address = f"http://127.0.0.1:{machine.port}/s/alice/v2/customers"
            assert 200 == httpx2.get(address, headers=headers, verify=NO_TLS).status_code
        if heading == "Somebody leaves" and len(said[heading]) == 1:
            assert httpx2.get(address, headers=headers, verify=NO_TLS).status_code == 404
    others = [title for title, _ in BLOCKS if title and title not in said]
    assert ["Several servers", "Docker"] == others
    assert '{"status":"ready"}' in said["TLS"][0]
    assert "is ready." in said["Start"][0] + said["Back up"][1] + said["Upgrade"][0]
    assert "SUCCESS: 6 rules found" in said["Watch"][0]
    assert "is a copy of the store" in said["Back up"][0]
    assert "alice" in said["Somebody leaves"][0]
    assert 0o600 == (machine.folder / "etc" / "membership-sandbox.env").stat().st_mode & 0o777
    machine.run("stub-server wait")
    old = httpx2.get(
        f"http://127.0.0.1:{machine.port}/_sandbox/clock",
        headers={"X-Sandbox-Admin-Key": str(before)},
        verify=NO_TLS,
    )
    assert 403 == old.status_code


def link_of(machine: Machine) -> str:
    """In place of pip: the command of these tests' environment."""
    here = Path(sys.executable).with_name("stub-server")
    return f"mkdir -p /opt/membership-sandbox/bin && ln -sf {here} /opt/membership-sandbox/bin/"
