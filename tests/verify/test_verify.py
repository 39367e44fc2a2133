"""`stub-server verify` over real HTTP: our own server does not depart, and a mutant is found and named."""

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import yaml

from ..support.live import NO_TLS
from .mutants import every
from .runs import CREDENTIALS, ROOT, backend, credentials, departed, missed, verify

pytestmark = pytest.mark.check
WORKFLOW = ROOT / "docs" / "verify-workflow.yml"


def test_our_own_server_does_not_depart_even_when_it_shuffles_headers() -> None:
    """`make verify-mutants` compares slow ones too, of other scenarios and seeds."""
    with backend("--shuffle") as url:
        outcome = verify(url)
    assert [] == departed(outcome), outcome.output


@pytest.mark.parametrize(
    "name",
    [
        "drops createCustomer metadata",
        *(
            pytest.param(name, marks=pytest.mark.night)
            for name in (
                "keeps updateCustomer phones",
                "drops updateCustomer address.city",
                "keeps updateProject metadata",
                "create-not-kept",
                "ignores listCustomers type",
                "renames getWebhook 404 not_found",
                "renames createOrder 409 idempotency_key_reused",
            )
        ),
    ],
)
def test_a_mutant_is_found_and_named(name: str) -> None:
    mutant = every()[name]
    only = [part for operation in sorted(mutant.operations) for part in ("--only", operation)]
    with backend(mutants=[name]) as url:
        outcome = verify(url, *only)
    assert [] == missed(outcome, [mutant], beside=1), outcome.output


@pytest.mark.parametrize(
    "kind",
    [
        "key of one project",
        *(pytest.param(kind, marks=pytest.mark.night) for kind in CREDENTIALS if "project" not in kind),
    ],
)
def test_what_a_credential_may_not_do_is_out_of_reach_with_its_reason(kind: str) -> None:
    with backend() as url:
        outcome = verify(url, "--only", "Customers", "--only", "Plans", token=credentials(url)[kind])
    assert [] == departed(outcome), outcome.output
    reasons = [each["reason"] for each in outcome.report["unreached"]]
    assert all(reasons), outcome.output
    expected = {
        "key of one project": "the credential is limited to some projects",
        "key of five scopes": "the credential lacks plans:write",
        "public key": "needs a private key or a JWT, and the credential is a public key",
    }.get(kind, "")
    assert any(reason.endswith(expected) for reason in reasons)


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
        ran = subprocess.run(["bash", "-euc", verifies], cwd=tmp_path, env=env, capture_output=True, timeout=900)
    assert ran.returncode == 0, ran.stderr
    uploaded = {step["with"].get("sarif_file", step["with"].get("path")) for step in steps if "if" in step}
    assert uploaded == {file.name for file in tmp_path.iterdir()} == {"verify.sarif", "verify.html"}
