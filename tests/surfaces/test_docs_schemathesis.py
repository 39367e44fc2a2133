"""docs/schemathesis.md: its commands and its sample are run in directories that have nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ..contract.__main__ import server
from ..support.contract import document

pytestmark = pytest.mark.check

SECTION = (Path(__file__).parents[2] / "docs" / "schemathesis.md").read_text(encoding="utf-8")
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


def test_the_command_as_it_is_typed_passes_without_a_file(tmp_path: Path) -> None:
    assert "`--check-digits off`" in SECTION
    with server(more=("--check-digits", "off")) as url:
        ran(tmp_path, "bash", "-euc", AS_TYPED, SANDBOX_URL=url)


def test_the_command_as_it_is_typed_is_refused_nowhere_for_its_credential(tmp_path: Path) -> None:
    """Each operation answers something else than 401 and 403."""
    with server(more=("--check-digits", "off")) as url:
        ran(tmp_path, "bash", "-euc", f"{AS_TYPED} -n 1 --phases fuzzing", SANDBOX_URL=url)
        statuses: dict[str, set[int]] = {}
        pages = [httpx2.get(f"{url}/_sandbox/requests?limit=100&page={page}").json() for page in range(1, 6)]
        for entry in (entry for page in pages for entry in page["requests"]):
            statuses.setdefault(entry["operationId"] or "", set()).add(entry["status"])
    assert set(document().operations) <= set(statuses)
    assert [] == [name for name in document().operations if statuses[name] <= {401, 403}]


def test_a_repository_that_has_only_the_written_files_passes(tmp_path: Path) -> None:
    """Every scenario that was asked for is run: none ends the phase."""
    with server() as url:
        text = ran(tmp_path, "bash", "-euc", BY_FILES, SANDBOX_URL=url).stdout
    scenarios = re.search(r"Scenarios:\s+(\d+)", text)
    assert scenarios is not None
    assert int(scenarios[1]) >= 10
    assert (tmp_path / ".github" / "workflows" / "contract-tests.yml").is_file()


def test_every_file_names_the_release_that_is_needed() -> None:
    """An older one is upgraded by the workflow, where a runner has it."""
    root = Path(__file__).parents[2]
    needed = '"schemathesis>=4.32.5,<4.33"'
    assert needed in (root / "pyproject.toml").read_text(encoding="utf-8")
    workflow = (root / "fixtures" / "schemathesis" / "contract-tests.yml").read_text(encoding="utf-8")
    assert re.search(rf"pip install --upgrade .*{re.escape(needed)}", workflow)
    assert "schemathesis.readthedocs.io) 4.32.5 " in SECTION


def test_the_sample_authenticates_every_operation(tmp_path: Path) -> None:
    """Those whose scheme had no token would answer nothing but 401."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    text = SAMPLE.replace('path_regex="^/v2/customers"', 'path_regex="^/api-keys"')
    text = text.replace(
        '{"auth":', '{"generation": {"max-examples": 1}, "phases": {"coverage": {"enabled": False}}, "auth":'
    )
    call = 'print(f"{case.operation.label}: {case.call().status_code}")'
    (tmp_path / "test_all.py").write_text(text.replace("case.call_and_validate()", call))
    said = ran(tmp_path, sys.executable, "-m", "pytest", "-q", "-s", "test_all.py").stdout
    answers = re.findall(r"([A-Z]+ /api-keys\S*): ([0-9]+)", said)
    assert len({label for label, _ in answers}) == 7
    assert {label for label, status in answers if status != "401"} == {label for label, _ in answers}


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
