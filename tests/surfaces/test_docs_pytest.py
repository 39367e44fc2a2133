"""Fixtures and tests of README and docs/pytest.md: they are run by pytest as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.check, pytest.mark.turn]

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "pytest.md")
_FILE = re.compile(r"^```(?:python|ini)\n# (\w+\.(?:py|ini))\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has the pages' files and nothing else."""
    files = dict(_FILE.findall("\n".join(page.read_text(encoding="utf-8") for page in PAGES)))
    tests = ("async", "checkout", "empty", "in_process", "membership", "shop", "unittest")
    assert ["pytest.ini", "shop.py", *(f"test_{name}.py" for name in tests)] == sorted(files)
    made = tmp_path_factory.mktemp("project")
    for name, text in files.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


def run(folder: Path, *args: str) -> str:
    """What pytest says of the project; the server's command is found as in an environment
    that is active.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "STUB_"))
    } | {"PATH": path}
    command = [sys.executable, "-m", "pytest", "-q", *args]
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_fixtures_and_tests_pass_as_they_stand(folder: Path) -> None:
    assert "11 passed" in run(folder)
