"""What the sandbox says of a refusal, and its nearest request pasted into a shell."""

import shutil
import subprocess
from pathlib import Path

import httpx2
import pytest

from .make import Json


def explanation(control: httpx2.Client, refusal: httpx2.Response) -> Json:
    """The explanation of a refused request."""
    answer = control.get(f"/requests/{refusal.headers['x-request-id']}")
    assert answer.status_code == 200, answer.text
    found = answer.json()["request"]["explanation"]
    assert found is not None, refusal.text
    return dict(found)


def pasted(command: str, folder: Path, **environment: str) -> list[int]:
    """Run commands as they stand in a shell; the statuses of the answers. Skips where there is no curl."""
    if shutil.which("curl") is None or shutil.which("sh") is None:
        pytest.skip("no curl is on this machine: nothing was pasted")
    (folder / ".curlrc").write_text('output = /dev/null\nwrite-out = "%{http_code}\\n"\n', encoding="ascii")
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={"CURL_HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return [int(line) for line in done.stdout.split()]
