"""Fixtures and tests of README and docs/pytest.md: they are run by pytest as they stand, with xdist too."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "pytest.md")
_FILE = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has the pages' files and nothing else."""
    files = dict(_FILE.findall("\n".join(page.read_text(encoding="utf-8") for page in PAGES)))
    assert ["conftest.py", "test_in_process.py", "test_membership.py", "test_shop.py"] == sorted(files)
    made = tmp_path_factory.mktemp("project")
    (made / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name, text in files.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


def run(folder: Path, *args: str) -> str:
    """What pytest says of the project; the server's command is found as in an environment that is active."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "STUB_"))} | {
        "PATH": path
    }
    command = [sys.executable, "-m", "pytest", "-q", *args]
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_fixtures_and_tests_pass_as_they_stand(folder: Path) -> None:
    assert "3 passed" in run(folder)


def test_they_pass_in_parallel_with_a_world_each(folder: Path) -> None:
    """The same test three times on two workers: none sees what another did."""
    text = (folder / "test_membership.py").read_text(encoding="utf-8")
    files = [f"test_membership_{number}.py" for number in range(3)]
    for name in files:
        (folder / name).write_text(text, encoding="utf-8")
    assert "3 passed" in run(folder, "-n", "2", *files)
