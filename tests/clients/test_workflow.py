"""The workflow that `init` writes: its steps are run as they are written, with tests of three kits
that fail.
"""

import re
import socket
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from stub_server.cli.command import main

from ..support.command import run as command
from .conftest import Project

pytestmark = [pytest.mark.check, pytest.mark.turn]

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW = (
    Path(__file__).parents[2] / "fixtures/init/github-actions/.github/workflows/sandbox-tests.yml"
).read_text(encoding="utf-8")
# What is installed already.
INSTALLS = ("pip install ", "npm ci", "npx playwright install ")
IN_JAVASCRIPT = """
import { dataOf } from "./sandbox/sandbox.js";
import { test } from "./sandbox/KIT.js";

test("a plan is sold", async ({ sandbox }) => {
  const body = { planId: "x" } as never;
  await sandbox.api.POST("/v2/orders/pix", { body });
  dataOf(await sandbox.api.POST("/v2/orders/pix", { body }));
});
"""
IN_PYTHON = """
def test_a_plan_is_sold(sandbox):
    for _ in range(2):
        answer = sandbox.api.post("/v2/orders/pix", json={"planId": "x"})
    assert 201 == answer.status_code
"""


def test_each_failed_test_says_what_was_refused_and_leaves_its_recording(folder: Project) -> None:
    for tool in ("github-actions", "vitest", "playwright"):
        assert 0 == CliRunner().invoke(main, ["init", tool, str(folder.folder)]).exit_code
    written = folder.folder / ".github" / "workflows" / "sandbox-tests.yml"
    assert WORKFLOW == written.read_text(encoding="utf-8")
    tests = folder.folder / "tests"
    for kit, ending in (("vitest", "test"), ("playwright", "spec")):
        (tests / f"checkout.{ending}.ts").write_text(
            IN_JAVASCRIPT.replace("KIT", kit), encoding="utf-8"
        )
    (tests / "test_checkout.py").write_text(IN_PYTHON, encoding="utf-8")
    said = ran(folder)
    assert 2 == said.count("2 times: POST /v2/orders/pix answered 422 validation_error"), said
    assert 3 == said.count("POST /v2/orders/pix answered 422 validation_error"), said
    assert 3 == said.count("succeeds with body.projectId: "), said
    assert 2 <= said.count('  planId: "x" is not a UUID'), said
    assert '"status":422' in (folder.folder / "sandbox.log").read_text(encoding="utf-8")
    recordings = sorted((folder.folder / "recordings").iterdir())
    assert [
        "checkout.spec.ts-a-plan-is-sold",
        "tests-checkout.test.ts-a-plan-is-sold",
        "tests-test_checkout.py-test_a_plan_is_sold",
    ] == [recording.name.removesuffix(".stub").rpartition(".")[0] for recording in recordings]
    for recording in recordings:
        replayed = command("replay", str(recording))
        assert (0, True) == (replayed.exit_code, "same: 2\n" in replayed.output), replayed.output


def ran(folder: Project) -> str:
    """What the steps of the workflow print, without those that install.

    Each test fails, and the next goes on.
    """
    job = yaml.safe_load(WORKFLOW)["jobs"]["test"]
    steps = [step["run"] for step in job["steps"] if "run" in step]
    serves, waits, *tests = [step for step in steps if not step.startswith(INSTALLS)]
    (shown,) = re.findall(r"^```sh\n(pip install .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert set() == {*shown.splitlines()[1:]} - {*steps}
    assert 3 == len(tests)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    env = {name: value.replace("4600", port) for name, value in job["env"].items()}
    env |= {"STUB_PORT": port, "STUB_SERVER": f"http://127.0.0.1:{port}"}
    script = "\n".join([serves, "trap 'kill $!' EXIT", waits, *(f"! {test}" for test in tests)])
    done = folder.run("bash", "-uec", script, **env)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr
