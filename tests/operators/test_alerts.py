"""docs/deploy/alerts.yml: its alerts ring in their cases, and for a server that is killed."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import yaml

from ..support.live import NO_TLS
from ..support.processes import Process, free_port

pytestmark = [pytest.mark.check, pytest.mark.turn]
DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
RULES = Path(__file__).parent / "alerts_rules.yml"


def run(*command: str | Path) -> str:
    """What a command prints, which must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files, as an operator copies them."""
    for file in (*DEPLOY.glob("*.yml"), RULES):
        shutil.copy(file, tmp_path)
    return tmp_path


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed: apt install prometheus"
)
def test_promtool_finds_no_fault_and_every_alert_rings_in_its_case(folder: Path) -> None:
    assert "6 rules found" in run("promtool", "check", "rules", folder / "alerts.yml")
    run("promtool", "check", "config", "--syntax-only", folder / "prometheus.yml")
    run("promtool", "test", "rules", folder / RULES.name)


def test_the_cases_have_every_alert() -> None:
    (group,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    cases = yaml.safe_load(RULES.read_text(encoding="utf-8"))["tests"]
    alerts = {rule["alert"] for rule in group["rules"]}
    quiet, *_ = ({case["alertname"] for case in test["alert_rule_test"]} for test in cases)
    ringing = {
        case["alertname"]
        for test in cases
        for case in test["alert_rule_test"]
        if case.get("exp_alerts")
    }
    assert alerts == quiet == ringing


@contextmanager
def prometheus(folder: Path) -> Iterator[httpx2.Client]:
    """A client of Prometheus, run with the files of a folder."""
    port = free_port()
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=error",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=folder) as process:
        try:
            with httpx2.Client(
                base_url=f"http://127.0.0.1:{port}/api/v1", verify=NO_TLS, timeout=30
            ) as client:
                yield client
        finally:
            process.terminate()


def firing(client: httpx2.Client) -> set[str]:
    """The alerts that ring."""
    try:
        answer = client.get("/alerts")
    except httpx2.TransportError:
        return set()
    return {
        alert["labels"]["alertname"]
        for alert in answer.json()["data"]["alerts"]
        if alert["state"] == "firing"
    }


@pytest.mark.night
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
def test_a_failing_request_and_a_killed_server_ring_in_prometheus(folder: Path) -> None:
    with Process("--admin-key", "a-long-admin-key", "--scenario", "empty") as server:
        (folder / "key").write_text("a-long-admin-key")
        config = yaml.safe_load((folder / "prometheus.yml").read_text())
        config["global"] |= {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (job,) = config["scrape_configs"]
        job["authorization"]["credentials_file"] = str(folder / "key")
        job["static_configs"] = [{"targets": [f"127.0.0.1:{server.port}"]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with prometheus(folder) as client:
            until(lambda: up(client) == ["1"])
            assert set() == firing(client)
            time.sleep(3)  # a first scrape at 0
            failing = httpx2.get(
                f"{server.url}/v2/customers",
                headers={"Prefer": "code=503", "X-Sandbox-Admin-Key": "a-long-admin-key"},
                verify=NO_TLS,
            )
            assert 503 == failing.status_code, failing.text
            until(lambda: "SandboxRequestsFail" in firing(client))
            server.kill()
            until(lambda: "SandboxDown" in firing(client))


def up(client: httpx2.Client) -> list[str]:
    """Whether Prometheus reaches the servers, by its own metric."""
    try:
        found = client.get("/query", params={"query": "up"}).json()["data"]["result"]
    except httpx2.TransportError:
        return []
    return [each["value"][1] for each in found]


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds, three minutes at most: an alert has to stand for one of them."""
    deadline = time.monotonic() + 180
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.5)
