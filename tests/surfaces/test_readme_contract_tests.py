"""The README's contract tests: its commands and its sample are run in directories that have nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..contract.__main__ import server

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Contract tests\n")[2].partition("\n## ")[0]
(BY_FILES,) = re.findall(r"^```sh\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
(AS_TYPED,) = re.findall(r"`(schemathesis run [^`]*)`", SECTION)
((PLACE, SAMPLE),) = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)


def ran(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder of its own, the environment's commands at hand."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "STUB_", "SANDBOX_"))}
    done = subprocess.run(
        command, cwd=folder, env=env | {"PATH": path} | more, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2000:]
    return done


def test_the_section_is_short() -> None:
    assert 30 >= len(f"## Contract tests\n{SECTION}".rstrip("\n").splitlines())


def test_the_command_as_it_is_typed_passes_without_a_file(tmp_path: Path) -> None:
    with server(more=("--check-digits", "off")) as url:
        ran(tmp_path, "bash", "-euc", AS_TYPED, SANDBOX_URL=url)


def test_a_repository_that_has_only_the_written_files_passes(tmp_path: Path) -> None:
    """Every scenario that was asked for is run: none ends the phase."""
    with server() as url:
        text = ran(tmp_path, "bash", "-euc", BY_FILES, SANDBOX_URL=url).stdout
    scenarios = re.search(r"Scenarios:\s+(\d+)", text)
    assert scenarios is not None
    assert int(scenarios[1]) >= 10
    assert (tmp_path / ".github" / "workflows" / "contract-tests.yml").is_file()


@pytest.mark.parametrize("loader", ["from_asgi", "from_url"])
def test_the_sample_passes_as_it_stands(tmp_path: Path, loader: str) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    file = tmp_path / PLACE.rpartition("/")[2]
    file.write_text(SAMPLE)
    if loader == "from_asgi":
        assert " passed" in ran(tmp_path, sys.executable, "-m", "pytest", "-q", file.name).stdout
        return
    with server(more=("--check-digits", "off")) as url:
        text = re.sub(r"from_asgi\(.*", f'from_url("{url}/openapi.json", config=config)', SAMPLE)
        text = re.sub(r"TestClient\(.*?\)\.get\(", f'__import__("httpx").get("{url}" + ', text)
        file.write_text(text)
        assert " passed" in ran(tmp_path, sys.executable, "-m", "pytest", "-q", file.name).stdout
