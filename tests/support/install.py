"""Commands that install packages: they need a registry, and are skipped where there is none."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

_UNREACHABLE = re.compile(
    r"NewConnectionError|ConnectTimeoutError|name resolution|Connection refused"
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
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=400)
    if ran.returncode and (found := _UNREACHABLE.search(ran.stderr)):
        pytest.skip(f"pip cannot reach its registry ({found[0]})")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


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
