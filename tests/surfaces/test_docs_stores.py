"""docs/stores.md and docs/deploy/compose.yaml: what they name exists, and what there is they name."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import yaml

from stub_server.cli.command import serve

from ..support.contract import document

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "deploy" / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
PROXY: str = COMPOSE["configs"]["caddyfile"]["content"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def upstreams() -> list[str]:
    """The servers that the proxy knows."""
    (line,) = re.findall(r"reverse_proxy (.*) \{", PROXY)
    return shlex.split(line)


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
