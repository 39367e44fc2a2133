"""What the sandbox says of a refusal, and its nearest request pasted into a shell."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import httpx2
import pytest

from .make import Json, done, object_of

BEFORE_A_SANDBOX = ("host_not_allowed", "delivery_not_allowed", "sandbox_not_found")
"""Codes of requests that are refused before a sandbox is chosen: the default one's
journal has them.
"""
ENDING = re.compile(r"/(?:archive|suspend|cancel|refund|fail|expire)$")
ENDED = {"is_active": (False,), "status": ("inactive", "archived", "suspended")}


def explanation(control: httpx2.Client, refusal: httpx2.Response) -> Json:
    """The explanation of a refused request."""
    request = done(control.get(f"/requests/{refusal.headers['x-request-id']}"))["request"]
    assert request["explanation"] is not None, refusal.text
    return object_of(request, "explanation")


def pasted(command: str, folder: Path, **environment: str) -> list[int]:
    """Run commands as they stand in a shell; the statuses of the answers.

    Skips where there is no curl.
    """
    if shutil.which("curl") is None or shutil.which("sh") is None:
        pytest.skip("no curl is on this machine: nothing was pasted")
    (folder / ".curlrc").write_text(
        'output = /dev/null\nwrite-out = "%{http_code}\\n"\n', encoding="ascii"
    )
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


def needs_another(found: Json) -> None:
    """No request is the nearest one; the state says what would do."""
    assert found["nearest"] is None, found["nearest"]
    assert found["state"]["needed"], found


def same_act(refusal: httpx2.Response, nearest: Json) -> None:
    """Method and record are those of the refused request, and no call ends anything that
    it did not name.
    """
    asked = refusal.request
    *before, last = [shlex.split(call) for call in nearest["curl"].split(" &&\n")]
    assert asked.method == _method(last)
    assert refusal.json()["code"] == "route_not_found" or str(asked.url).partition("?")[0] == _url(
        last
    )
    assert asked.method != "GET" or not before
    for call in before:
        assert _method(call) != "DELETE"
        assert not ENDING.search(_url(call))
        body = json.loads(call[-1]) if "--data-raw" in call else {}
        assert not [name for name, values in ENDED.items() if body.get(name) in values]


def _method(call: list[str]) -> str:
    return call[call.index("-X") + 1]


def _url(call: list[str]) -> str:
    return call[call.index("-X") + 2].partition("?")[0]


def nearest_succeeds(refusal: httpx2.Response, found: Json, folder: Path) -> None:
    """The nearest request of an explanation is the same act, and is granted as it is pasted."""
    nearest = found["nearest"]
    assert nearest is not None, found
    same_act(refusal, nearest)
    statuses = pasted(nearest["curl"], folder)
    assert all(200 <= status < 300 for status in statuses), (statuses, nearest)
