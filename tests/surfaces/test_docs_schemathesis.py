"""docs/schemathesis.md: its commands and its sample are run in directories that have
nothing else.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ..contract.__main__ import server
from ..contract.reach import Reach, accepted, operations
from ..contract.runner import including
from ..support.contract import document
from ..support.short import chosen

pytestmark = [pytest.mark.check, pytest.mark.turn]

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = (Path(__file__).parents[2] / "docs" / "schemathesis.md").read_text(encoding="utf-8")
(BY_FILES,) = re.findall(r"^```sh\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
SWITCH, AS_TYPED = re.findall(r"^    ((?:curl|schemathesis run) .*)$", README, re.MULTILINE)
((PLACE, SAMPLE),) = re.findall(
    r"^```python\n# (\S+\.py)\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL
)


def ran(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder of its own, the environment's commands at hand."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "STUB_", "SANDBOX_"))
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=env | {"PATH": path} | more,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2000:]
    return done


def variables(url: str) -> dict[str, str]:
    """What `stub-server env` sets for the README's commands."""
    token = httpx2.get(f"{url}/_sandbox/credentials").raise_for_status().json()["jwt"]
    return {"STUB_URL": url, "STUB_TOKEN": token}


@pytest.mark.parametrize(
    ("mode", "phases", "most"),
    [
        ("positive", "examples,coverage", 12),
        pytest.param("all", "examples,coverage,fuzzing,stateful", 1_000, marks=pytest.mark.night),
    ],
)
def test_the_readme_s_command_passes_without_a_file_and_is_refused_nowhere_for_its_credential(
    tmp_path: Path, mode: str, phases: str, most: int
) -> None:
    """Each operation answers something else than 401 and 403 to a request that is meant to be
    accepted, and at least 45 of the 49 are answered 2xx.

    Some operations, other ones with every commit, and at night all. Requests by chance, those that
    are to be refused, and chains are sent at night.
    """
    found = {operation["operationId"]: name for name, operation in operations(document().raw)}
    assert found.keys() == document().operations.keys()
    asked = chosen(most, found)
    report = tmp_path / "events.ndjson"
    reach = Reach()
    with server() as url:
        options = f"--mode={mode} --phases={phases} --report=ndjson --report-ndjson-path={report}"
        options = " ".join([options, *including(asked)])
        ran(tmp_path, "bash", "-euc", f"{SWITCH}\n{AS_TYPED} {options}", **variables(url))
    reach.read(report)
    assert [] == [ident for ident in asked if not reach.valid.get(found[ident])]
    answered = [name for name, statuses in reach.all.items() if accepted(statuses)]
    assert most < len(found) or len(answered) >= 45, sorted(answered)


@pytest.mark.night
def test_a_repository_that_has_only_the_written_files_passes(tmp_path: Path) -> None:
    """Every scenario that was asked for is run: none ends the phase.

    A few operations, among them those that take documents and networks. `test_schemathesis.py` asks
    all.
    """
    options = (
        "--phases=examples,fuzzing,stateful"
        " --include-path-regex='^/(api-keys|v2/(customers|projects|plans))'"
    )
    with server() as url:
        text = ran(
            tmp_path, "bash", "-euc", f"{BY_FILES.strip()} {options}", SANDBOX_URL=url
        ).stdout
    scenarios = re.search(r"Scenarios:\s+(\d+)", text)
    assert scenarios is not None
    assert int(scenarios[1]) >= 10
    assert (tmp_path / ".github" / "workflows" / "contract-tests.yml").is_file()


def test_every_file_names_the_release_that_is_needed() -> None:
    """An older one is upgraded by the workflow, where a runner has it."""
    root = Path(__file__).parents[2]
    needed = '"schemathesis>=4.32.5,<4.33"'
    assert needed in (root / "pyproject.toml").read_text(encoding="utf-8")
    workflow = (root / "fixtures/init/schemathesis/.github/workflows/contract-tests.yml").read_text(
        encoding="utf-8"
    )
    assert re.search(rf"pip install --upgrade .*{re.escape(needed)}", workflow)
    assert "schemathesis.readthedocs.io) 4.32.5 " in SECTION


def test_the_sample_gets_its_token_and_its_contract(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(SAMPLE)
    ran(tmp_path, sys.executable, "-m", "sample")


@pytest.mark.night
@pytest.mark.parametrize("examples", [10, 100])
def test_the_sample_passes_as_it_is(tmp_path: Path, examples: int) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(
        "from hypothesis import settings\nsettings.register_profile('few',"
        f" max_examples={examples})\nsettings.load_profile('few')\n"
    )
    file = tmp_path / PLACE.rpartition("/")[2]
    file.write_text(SAMPLE)
    assert " passed" in ran(tmp_path, sys.executable, "-m", "pytest", "-q", file.name).stdout
