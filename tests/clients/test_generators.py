"""Clients that @hey-api/openapi-ts and orval make of the contract: they compile, and make ten round
trips each.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..support.live import NO_TLS, Live
from .conftest import SHIPPED, Project

pytestmark = [pytest.mark.check, pytest.mark.night]

PAGE = (Path(__file__).parents[2] / "docs" / "typescript.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^npx .* --output src/\w+.*$", PAGE, re.MULTILINE)
_RUN = (
    "import('./dist/{name}.js').then(made => made.main(...JSON.parse(process.argv[1])))"
    ".then(seen => console.log(JSON.stringify(seen)))"
)


@pytest.mark.parametrize("name", ["hey", "orval"])
def test_what_is_generated_compiles_and_makes_ten_round_trips(
    folder: Project, live: Live, sandbox_name: str, name: str
) -> None:
    (command,) = [command for command in COMMANDS if f"src/{name}" in command]
    made = folder.run("bash", "-ec", command.replace("http://127.0.0.1:4600", live.url))
    assert made.returncode == 0, made.stdout + made.stderr
    shutil.copy(SHIPPED / "generated" / f"{name}.ts", folder.folder / "src")
    # What openapi-ts ships with every client is not written for this option, which is no part of
    # --strict.
    assert [] == folder.compile("--exactOptionalPropertyTypes", "false")
    base = f"{live.url}/s/{sandbox_name}"
    known = httpx2.get(f"{base}/_sandbox/credentials", verify=NO_TLS).json()
    arguments = [base, known["jwt"], known["sample"]["projectId"], known["sample"]["planId"]]
    ran = folder.run("node", "-e", _RUN.format(name=name), json.dumps(arguments))
    assert ran.returncode == 0, ran.stderr
    seen: dict[str, Any] = json.loads(ran.stdout)
    assert {
        "listed": True,
        "customer": "Marina Duarte Lima",
        "polled": ["pending", "000201"],
        "orders": [True],
        "interval": "month",
        "refused": "duplicate_document",
    } == seen
    sent = httpx2.get(f"{base}/_sandbox/requests", params={"limit": 100}, verify=NO_TLS).json()[
        "requests"
    ]
    assert 10 == len([each for each in sent if "/v2/" in each["path"]])
