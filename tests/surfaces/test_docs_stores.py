"""docs/stores.md and docs/deploy/compose.yaml: what they name exists, and what there is they name."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import httpx2
import yaml
from prometheus_client.parser import text_string_to_metric_families

from stub_server.cli import serve

from ..support.contract import document
from ..support.live import NO_TLS, Live

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "stores.md").read_text(encoding="utf-8")
FILE = ROOT / "docs" / "deploy" / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
PROXY: str = COMPOSE["configs"]["caddyfile"]["content"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_page_lists_the_metrics_that_there_are(live: Live) -> None:
    told = set(re.findall(r"^\| `(stub_\w+)`", PAGE, re.MULTILINE))
    answer = httpx2.get(f"{live.url}/_sandbox/metrics", verify=NO_TLS)
    found = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(answer.text)
        if family.name.startswith("stub_")
    }
    assert found == told - {"stub_lease_seconds"}  # which a shared store alone has


def test_the_scrape_asks_for_the_metrics_of_each_server() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (job,) = yaml.safe_load(block)["scrape_configs"]
    assert "/metrics" in {operation.path for operation in document("sandbox.yaml").operations.values()}
    assert "/_sandbox/metrics" == job["metrics_path"]
    assert {"credentials_file"} == set(job["authorization"])  # sent as a bearer, unless told otherwise
    (targets,) = job["static_configs"]
    assert upstreams() == targets["targets"]


def upstreams() -> list[str]:
    """The servers that the proxy knows."""
    (line,) = re.findall(r"reverse_proxy (.*) \{", PROXY)
    return shlex.split(line)


def test_the_command_of_the_page_names_the_file_and_sets_what_it_asks_for() -> None:
    (command,) = [line for line in PAGE.splitlines() if "docker compose" in line]
    words = shlex.split(command)
    assert FILE == ROOT / words[words.index("-f") + 1]
    assert command in FILE.read_text(encoding="utf-8")
    required = set(re.findall(r"\$\{(\w+):\?", FILE.read_text(encoding="utf-8")))
    assert required == {word.partition("=")[0] for word in words if "=" in word}


def test_the_proxy_sends_to_the_servers_at_their_port_and_asks_whether_they_are_ready() -> None:
    (port,) = re.findall(r"^EXPOSE (\d+)", DOCKERFILE, re.MULTILINE)
    servers = [name for name, service in SERVICES.items() if service["image"] == "membership-sandbox"]
    assert 2 == len(servers)
    assert [f"{name}:{port}" for name in servers] == upstreams()
    (published,) = SERVICES["proxy"]["ports"]
    assert f":{published.partition(':')[2]} {{" in PROXY
    (asked,) = re.findall(r"health_uri /_sandbox(\S+)", PROXY)
    readiness = document("sandbox.yaml").operations["getReadiness"]
    assert readiness.path == asked
    (interval,) = re.findall(r"health_interval (\d+)ms", PROXY)
    assert int(interval) < 1000  # of the two seconds that a server is unready before it stops


def test_the_servers_have_settings_that_exist_and_the_driver() -> None:
    known = {f"STUB_{option.opts[0][2:].upper().replace('-', '_')}" for option in serve.params if option.opts}
    assert isinstance(serve, click.Command)
    for service in SERVICES.values():
        if service["image"] == "membership-sandbox":
            assert service["environment"].keys() <= known
            assert DOCKERFILE == (FILE.parent / service["build"] / "Dockerfile").read_text(encoding="utf-8")
    assert "'.[postgresql]'" in DOCKERFILE
    database = SERVICES["database"]["environment"]
    address = SERVICES["sandbox-1"]["environment"]["STUB_STORE"]
    user, password, name = (database[f"POSTGRES_{part}"] for part in ("USER", "PASSWORD", "DB"))
    assert f"postgresql://{user}:{password}@database/{name}" == address
