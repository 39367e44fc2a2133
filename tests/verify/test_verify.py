"""`stub-server verify` over real HTTP: our own server does not depart, and a mutant is
found and named.
"""

import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

import httpx2
import pytest
import yaml

from stub_server.tools.verify.exchange import Answer, Request
from stub_server.tools.verify.outcome import of_run

from ..support.forked import run
from ..support.live import NO_TLS
from ..support.make import Json
from .backend import Ask, rewritten
from .mutants import every
from .runs import (
    CREDENTIALS,
    LIKE_A_PROXY,
    LONGEST,
    ROOT,
    backend,
    credential,
    credentials,
    departed,
    missed,
    verify,
)
from .watched import watched

pytestmark = pytest.mark.check
WORKFLOW = ROOT / "docs" / "verify-workflow.yml"


SHORT = {("default", 42, "jwt"), ("empty", 7, "key of five scopes")}


@pytest.mark.parametrize(
    ("scenario", "seed", "kind"),
    [
        pytest.param(*each, marks=() if each in SHORT else pytest.mark.night)
        for each in product(("default", "empty"), (42, 7, 20261120), CREDENTIALS)
    ],
)
def test_our_own_server_does_not_depart(scenario: str, seed: int, kind: str) -> None:
    """Whatever it has and whoever asks; at night as through a proxy that adds 50 ms."""
    flags = () if (scenario, seed, kind) in SHORT else LIKE_A_PROXY
    with backend("--scenario", scenario, "--seed", str(seed), *flags) as url:
        outcome = verify(url, token=credentials(url)[kind])
    assert [] == departed(outcome), outcome.output
    reasons = [each["reason"] for each in outcome.report["unreached"]]
    assert all(reasons) or outcome.report["coverage"] < 100, outcome.output


@pytest.mark.turn
def test_our_own_server_does_not_depart_from_what_is_read_whoever_asks() -> None:
    with backend() as url:
        for kind, token in credentials(url).items():
            outcome = verify(url, token=token, writes=False)
            assert [] == departed(outcome), f"{kind}: {outcome.output}"


@pytest.mark.turn
@pytest.mark.parametrize("name", ["drops createCustomer metadata", "pages-off-by-one"])
def test_a_mutant_is_found_and_named(name: str) -> None:
    mutant = every()[name]
    with backend(mutants=[name]) as url:
        outcome = verify(url, "--only", *mutant.operations)
    assert [] == missed(outcome, [mutant], beside=1), outcome.output


@pytest.mark.turn
def test_a_change_that_is_not_dated_is_named() -> None:
    """The answers take a moment, so that records are older than the tolerance."""
    mutant = every()["change-not-dated"]
    with backend("--delay", "0.03", mutants=[mutant.name]) as url:
        outcome = verify(url, "--only", "updateCustomer", "--settle", "0")
    assert [] == missed(outcome, [mutant], beside=0), outcome.output
    assert "updateCustomer" in outcome.divergences[0]["operations"]


def test_a_change_that_is_dated_before_its_record_is_certain() -> None:
    def shifted(it: Json) -> Json:
        if "updatedAt" not in it:
            return it
        local = datetime.fromisoformat(it["updatedAt"]) - timedelta(hours=3)
        return it | {"updatedAt": local.strftime("%Y-%m-%dT%H:%M:%S.000Z")}

    async def local(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        return rewritten(answer, shifted) if "/v2/plans" in request.path else answer

    found = of_run(watched(local, write=True, only=("Plans",)).run, (), 0).divergences
    assert "contradiction" == found[0].kind


def test_a_method_that_the_contract_lacks_is_tried_of_unknown_records() -> None:
    """Only with `write`: a backend may serve it."""

    async def patched(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        return answer._replace(status=200) if request.method == "PATCH" else answer

    only = ("getApiInfo",)
    found = of_run(watched(patched, write=True, only=only).run, (), 0).divergences
    assert ["undocumented-operation"] == [each.kind for each in found]
    assert [] == of_run(watched(patched, only=only).run, (), 0).divergences


def test_a_filter_that_tells_case_apart_is_no_departure() -> None:
    with backend("--scenario", "empty") as url:
        headers = {"Authorization": f"Bearer {credential(url)}"}
        with httpx2.Client(base_url=url, headers=headers, timeout=60, verify=NO_TLS) as api:
            made = api.post("/v2/projects", json={"name": "Loja"}).json()["data"]["project"]
            body = {"url": "https://verify.invalid/", "projectId": made["id"]}
            hook = api.post("/v2/webhooks", json=body | {"events": ["order.paid"]}).json()
            api.post(f"/v2/webhooks/{hook['webhook']['id']}/test", json={}).raise_for_status()
        outcome = verify(url, "--only", "listWebhookLogs", writes=False)
    assert [] == outcome.divergences, outcome.output


def test_the_docs_show_what_is_said_of_a_backend_that_ignores_a_filter() -> None:
    with backend(mutants=["ignores listCustomers type"]) as url:
        command = [sys.executable, "-m", "stub_server", "verify", url, "--only", "listCustomers"]
        said = run([*command, "--token", credential(url)], cwd=ROOT, timeout=LONGEST).stdout
    page = (ROOT / "docs/verify.md").read_text(encoding="utf-8")
    shown = page.split("```text\n1. filter: ")[1].split("```")[0]
    assert re.search(".*".join(map(re.escape, shown.strip().split("…"))), said, re.DOTALL), said


@pytest.mark.turn
def test_what_a_credential_may_not_do_is_out_of_reach_with_its_reason() -> None:
    expected = {
        "key of one project": "the credential is limited to some projects",
        "public key": "needs a private key or a JWT, and the credential is a public key",
    }
    with backend() as url:
        tokens = credentials(url)
        for kind, reason in expected.items():
            outcome = verify(url, "--only", "Plans", token=tokens[kind])
            assert [] == departed(outcome), outcome.output
            reasons = [each["reason"] for each in outcome.report["unreached"]]
            assert all(reasons), outcome.output
            assert any(each.endswith(reason) for each in reasons)


@pytest.mark.night
def test_the_workflow_of_the_docs_leaves_the_files_that_it_uploads(tmp_path: Path) -> None:
    steps = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["verify"]["steps"]
    installs, verifies = [step["run"] for step in steps if "run" in step]
    assert installs.startswith("pip install ")
    with backend() as url:
        credentials = httpx2.get(f"{url}/_sandbox/credentials", timeout=30, verify=NO_TLS).json()
        env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "BACKEND_URL": url,
            "STUB_VERIFY_TOKEN": credentials["jwt"],
        }
        ran = subprocess.run(
            ["bash", "-euc", verifies], cwd=tmp_path, env=env, capture_output=True, timeout=900
        )
    assert ran.returncode == 0, ran.stderr
    uploaded = {
        step["with"].get("sarif_file", step["with"].get("path")) for step in steps if "if" in step
    }
    assert uploaded == {file.name for file in tmp_path.iterdir()} == {"verify.sarif", "verify.html"}
