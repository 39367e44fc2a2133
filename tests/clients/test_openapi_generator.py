"""Clients that openapi-generator makes of the served contracts without flags: they compile, and
make ten round trips.

The contract is a file when it is read, as it is in most builds: so the address of the server comes
from the file.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..support.install import run
from ..support.live import NO_TLS, Live
from .conftest import SHIPPED, Project

pytestmark = [pytest.mark.check, pytest.mark.night]

HERE = Path(__file__).parent
NEEDED = "openapi-generator-cli==7.26.0"
_INSTALLED = HERE.parents[1] / "build" / "openapi-generator" / "7.26.0"
_NOT_HERE = re.compile(r"offline|could not be resolved|Could not resolve|PluginResolutionException")
_RUN = (
    "import('./dist/openapi_generator.js').then(made => made.main(...JSON.parse(process.argv[1])))"
    ".then(seen => console.log(JSON.stringify(seen)))"
)
# What the generator ships with every client is not written for these options, which are no part of
# --strict.
_MODULES = ("--module", "commonjs", "--moduleResolution", "node10")
_LESS = tuple(
    part
    for option in ("noUnusedLocals", "exactOptionalPropertyTypes", "noUncheckedIndexedAccess")
    for part in (f"--{option}", "false")
)
SEEN = {
    "listed": True,
    "customer": "Marina Duarte Lima",
    "polled": ["pending", "000201"],
    "orders": [True],
    "interval": "month",
    "refused": "duplicate_document",
}


@pytest.fixture(scope="session")
def jar() -> Path:
    """The generator, installed once; skips where it cannot be had."""
    if shutil.which("java") is None:
        pytest.skip("java is not on this machine")
    found = _INSTALLED / "openapi_generator_cli" / "openapi-generator.jar"
    if not found.exists():
        pip = [sys.executable, "-m", "pip", "install", "--no-deps"]
        run([*pip, "--target", str(_INSTALLED), NEEDED], HERE, os.environ)
    return found


def generate(jar: Path, url: str, language: str, target: Path) -> None:
    """A client of a served contract. No flag but those that say what, of what and where to."""
    contract = target.parent / f"{target.name}.json"
    contract.write_bytes(httpx2.get(url, verify=NO_TLS, timeout=30).content)
    command = [
        "java",
        "-jar",
        str(jar),
        "generate",
        "-i",
        str(contract),
        "-g",
        language,
        "-o",
        str(target),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stdout[-2_000:] + ran.stderr[-2_000:]


def arguments(base: str) -> list[str]:
    """A token, a project and a plan of the sandbox at an address."""
    known = httpx2.get(f"{base}/_sandbox/credentials", verify=NO_TLS).json()
    return [known["jwt"], known["sample"]["projectId"], known["sample"]["planId"]]


def calls(base: str) -> int:
    """How many requests to the API the sandbox at an address has answered."""
    sent = httpx2.get(f"{base}/_sandbox/requests", params={"limit": 100}, verify=NO_TLS).json()[
        "requests"
    ]
    return len([each for each in sent if "/v2/" in each["path"]])


def test_python(jar: Path, live: Live, sandbox_name: str, tmp_path: Path) -> None:
    base = f"{live.url}/s/{sandbox_name}"
    generate(jar, f"{base}/openapi.json", "python", tmp_path / "made")
    given = [str(tmp_path / "made"), *arguments(base)]
    command = [sys.executable, str(HERE / "round_trips.py"), *given]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == SEEN
    assert calls(base) == 10


def test_typescript(jar: Path, folder: Project, live: Live, sandbox_name: str) -> None:
    base = f"{live.url}/s/{sandbox_name}"
    generate(jar, f"{base}/openapi.json", "typescript-fetch", folder.folder / "src" / "openapi")
    shutil.copy(SHIPPED / "generated" / "openapi_generator.ts", folder.folder / "src")
    assert folder.compile(*_MODULES, *_LESS) == []
    (folder.folder / "dist" / "package.json").write_text('{"type": "commonjs"}')
    ran = folder.run("node", "-e", _RUN, json.dumps(arguments(base)))
    assert ran.returncode == 0, ran.stderr
    seen: dict[str, Any] = json.loads(ran.stdout)
    assert seen == SEEN
    assert calls(base) == 10


def test_typescript_of_the_control_surface(jar: Path, folder: Project, live: Live) -> None:
    generate(
        jar,
        f"{live.url}/_sandbox/openapi.json",
        "typescript-fetch",
        folder.folder / "src" / "control",
    )
    assert folder.compile(*_MODULES, *_LESS) == []
    generate(jar, f"{live.url}/_sandbox/openapi.json", "python", folder.folder / "control")


def test_java(jar: Path, live: Live, tmp_path: Path) -> None:
    """Generated for both contracts; compiled where Maven has the libraries of that client
    on this machine.
    """
    for name, path in (("api", "/openapi.json"), ("control", "/_sandbox/openapi.json")):
        generate(jar, live.url + path, "java", tmp_path / name)
    if shutil.which("mvn") is None:
        pytest.skip("Maven is not on this machine: the Java client was generated, not compiled")
    for name in ("api", "control"):
        command = ["mvn", "--offline", "--batch-mode", "--quiet", "compile"]
        ran = subprocess.run(
            command, cwd=tmp_path / name, capture_output=True, text=True, timeout=300, check=False
        )
        if ran.returncode and _NOT_HERE.search(ran.stdout):
            pytest.skip(
                "Maven does not have the libraries here: the Java client was generated, not"
                " compiled"
            )
        assert ran.returncode == 0, ran.stdout[-3_000:]
