"""`stub-server init`: what it writes, that it overwrites nothing, and that what it writes works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import yaml
from click.testing import CliRunner

from stub_server.cli.command import main
from stub_server.contract.source import fixture

from ..support.live import NO_TLS
from ..support.processes import Process

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "fixtures" / "init"
TOOLS = fixture("init-tools.yaml")
WORKFLOWS = (
    *TEMPLATES.glob("*/.github/workflows/*"),
    ROOT / "docs" / "verify-workflow.yml",
    ROOT / ".github" / "workflows" / "ci.yml",
)


def templates(tool: str) -> dict[str, bytes]:
    """The files of a tool by where they go."""
    return {
        str(file.relative_to(TEMPLATES / folder)): file.read_bytes()
        for folder in TOOLS[tool]
        for file in (TEMPLATES / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def written(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_every_file_is_written_where_its_tool_reads_it(tmp_path: Path, tool: str) -> None:
    done = CliRunner().invoke(main, ["init", tool, str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    assert templates(tool) == written(tmp_path / "new")
    assert sorted(done.output.split()) == sorted(
        str(tmp_path / "new" / place) for place in templates(tool)
    )


def test_a_file_that_exists_is_named_and_none_is_written(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text("mine")
    done = CliRunner().invoke(main, ["init", "schemathesis", str(tmp_path)])
    assert (2, True) == (
        done.exit_code,
        f"{tmp_path / 'schemathesis.toml'} exists already" in done.output,
    )
    assert {"schemathesis.toml": b"mine"} == written(tmp_path)


@pytest.mark.promise("init-follows-no-link")
def test_a_link_that_leads_nowhere_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "sandbox_hooks.py").symlink_to(elsewhere)
    done = CliRunner().invoke(main, ["init", "schemathesis", str(tmp_path / "new")])
    assert (2, True) == (done.exit_code, "sandbox_hooks.py exists already" in done.output)
    assert not elsewhere.exists()


@pytest.mark.promise("init-follows-no-link")
def test_a_folder_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    new = tmp_path / "new"
    elsewhere.mkdir()
    new.mkdir()
    (new / ".github").symlink_to(elsewhere)
    done = CliRunner().invoke(main, ["init", "github-actions", str(new)])
    assert (2, True) == (done.exit_code, ".github/workflows exists already" in done.output)
    assert {} == written(elsewhere)
    (tmp_path / "link").symlink_to(elsewhere)  # the folder itself is the user's choice
    done = CliRunner().invoke(main, ["init", "github-actions", str(tmp_path / "link")])
    assert (0, 1) == (done.exit_code, len(written(elsewhere)))


@pytest.mark.check
def test_the_compose_file_keeps_its_schema_and_starts_a_server_that_others_can_call(
    tmp_path: Path,
) -> None:
    file = TEMPLATES / "compose" / "compose.sandbox.yaml"
    fits("vendor.compose-spec", file)
    (service,) = yaml.safe_load(file.read_text(encoding="utf-8"))["services"].values()
    settings = service["environment"] | {"STUB_ADMIN_KEY": "5f2a0c1e9b7d"}
    asked = service["environment"]["STUB_ADMIN_KEY"]
    assert asked.startswith("${STUB_ADMIN_KEY:?"), "the file brings no key of its own"
    assert "openssl rand" in asked, "it says how to make one"
    assert "STUB_ALLOW_PRIVATE_WEBHOOKS" not in settings
    assert settings.keys() <= {
        f"STUB_{option.name}".upper() for option in main.commands["serve"].params
    }
    with Process("--host", "0.0.0.0", env=settings) as server:  # noqa: S104 - as the image does
        found = [
            httpx2.get(
                f"{server.url}/_sandbox/sandboxes",
                headers={"X-Sandbox-Admin-Key": key},
                verify=NO_TLS,
            )
            for key in ("another", settings["STUB_ADMIN_KEY"])
        ]
    assert [403, 200] == [answer.status_code for answer in found]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_names_actions_by_their_commits_and_may_only_read(file: Path) -> None:
    """Whoever owns an action can move a tag of it."""
    text = file.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.+)", text)
    assert used
    assert [] == [
        action for action in used if re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action) is None
    ]
    assert "read" == yaml.safe_load(text)["permissions"]["contents"]


@pytest.mark.check
@pytest.mark.turn
def test_the_tests_for_pytest_pass(tmp_path: Path) -> None:
    assert 0 == CliRunner().invoke(main, ["init", "pytest", str(tmp_path)]).exit_code
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "STUB_"))
    }
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "3 passed" in ran.stdout, ran.stdout + ran.stderr


def fits(schema: str, file: Path) -> None:
    """What the schema that check-jsonschema ships says of a file."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert 0 == ran.returncode, ran.stdout
