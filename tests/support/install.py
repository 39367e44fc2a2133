"""Commands that install packages: they need a registry, and are skipped where there is none."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

UNREACHABLE = re.compile(
    r"NewConnectionError|ConnectTimeoutError|name resolution|Connection refused|ENOTFOUND|EAI_AGAIN"
    r"|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|ENOTCACHED"
)


def plain_env() -> dict[str, str]:
    """The environment without settings of a server, and without paths to modules."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STUB_", "PYTHON"))
    }


def run(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> str:
    """What a command that must succeed prints; what it lacks of the network skips the test."""
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    if ran.returncode and (found := UNREACHABLE.search(ran.stderr)):
        pytest.skip(f"the registry cannot be reached ({found[0]})")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def from_npm(shipped: Path, target: Path, *options: str) -> Path:
    """What a folder pins, as npm installs it, once for every state of the lock file; skips where
    it cannot be had.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not on this machine")
    lock = (shipped / "package-lock.json").read_bytes()
    done = target / "installed.lock"
    if not done.exists() or done.read_bytes() != lock:
        target.mkdir(parents=True, exist_ok=True)
        for file in shipped.glob("*.json"):  # openapi-ts reads its settings beside itself
            shutil.copy(file, target)
        run(["npm", "ci", "--no-audit", "--no-fund", *options], target, os.environ)
        done.write_bytes(lock)
    return target / "node_modules"


def needed(*wanted: str) -> set[str]:
    """The distributions that requirements name, and those that they need:

    `needed("psycopg[binary]")`.
    """
    found: set[tuple[str, str]] = set()
    left = [(text, "") for text in wanted]
    while left:
        text, asked = left.pop()
        each = Requirement(text)
        if each.marker is not None and not each.marker.evaluate({"extra": asked}):
            continue
        for extra in {"", *each.extras}:
            if (each.name.lower(), extra) not in found:
                found.add((each.name.lower(), extra))
                left += [(more, extra) for more in requires(each.name) or ()]
    return {name for name, _ in found}
