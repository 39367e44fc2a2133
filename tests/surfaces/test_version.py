"""`--version` names the commit that pip has installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

from stub_server.version import __version__

COMMIT = "4b7d0f6c1e2a39588d7e6f5a4b3c2d1e0f9a8b7c"


def version(path: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-m", "stub_server", "--version"]
    return subprocess.run(
        command, env=env, cwd=Path(__file__).parents[2], check=True, capture_output=True, text=True
    ).stdout


def test_the_version_has_the_commit_if_it_was_installed_by_one(tmp_path: Path) -> None:
    assert version(tmp_path) == f"stub-server, version {__version__}\n"
    info = tmp_path / "membership_sandbox-0.3.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: membership-sandbox\nVersion: 0.3.0\n"
    )
    origin = {"url": "https://example.com/a.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
    (info / "direct_url.json").write_text(json.dumps(origin))
    assert version(tmp_path) == f"stub-server, version {__version__} (commit {COMMIT})\n"
