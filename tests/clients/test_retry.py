"""docs/retry.md: its clients place one order while answers are lost, cut and refused; its table is
the contract's.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stub_server.console.leaves import Leaves

from ..support.contract import document
from ..support.live import NO_TLS, Live
from .conftest import _NODE, Project

PAGE = (Path(__file__).parents[2] / "docs" / "retry.md").read_text(encoding="utf-8")
NODE = _NODE / "node"
ORDER = {
    "totalAmount": 49.9,
    "items": [{"description": "Plano", "quantity": 1, "amount": 49.9}],
    "customer": {"name": "Rui Prado", "email": "rui@example.com", "document": "111.444.777-35"},
}
FAULTS: dict[str, dict[str, Any]] = {
    "lost after the change": {"drop_connection": "after"},
    "lost before the change": {"drop_connection": "before"},
    "cut": {"truncate_body": 0.5},
    "broken": {"corrupt_json": True},
    "refused": {"status": 429, "code": "rate_limited", "headers": {"Retry-After": "1"}},
    "unavailable": {"status": 503},
}
Place = Callable[[str, str, dict[str, Any]], "subprocess.CompletedProcess[str]"]


def program(language: str) -> str:
    return "\n\n".join(blocks(language))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def python(folder: Path) -> Place:
    (folder / "client.py").write_text(program("python"), encoding="utf-8")
    call = "import json, sys, client; print(json.dumps(client.place(*json.loads(sys.argv[1]))))"

    def place(api: str, token: str, order: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
        return ran(folder, sys.executable, "-c", call, json.dumps([api, token, "8841", order]))

    return place


def typescript(folder: Path) -> Place:
    (folder / "client.ts").write_text(program("ts"), encoding="utf-8")
    call = (
        "import('./client.ts').then(client => client.place(...JSON.parse(process.argv[1])))"
        ".then(order => console.log(JSON.stringify(order)))"
    )

    def place(api: str, token: str, order: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
        return ran(
            folder,
            str(NODE),
            "--experimental-strip-types",
            "-e",
            call,
            json.dumps([api, token, "8841", order]),
        )

    return place


def ran(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("language", [python, typescript])
def test_a_client_of_the_page_places_one_order_whatever_happens_to_its_answers(
    live: Live, sandbox_name: str, tmp_path: Path, language: Callable[[Path], Place]
) -> None:
    base = f"{live.url}/s/{sandbox_name}"
    place = language(tmp_path)
    with httpx2.Client(base_url=base, verify=NO_TLS, timeout=30) as client:
        me = client.get("/_sandbox/credentials").json()
        order = ORDER | {name: me["sample"][name] for name in ("projectId", "planId")}
        # one after the other befalls the attempts to place the order
        for n, then in enumerate(FAULTS.values()):
            rule = {
                "match": {"operationId": "createPixOrder"},
                "when": {"times": 1, "after": n},
                "then": then,
            }
            client.post("/_sandbox/faults", json=rule).raise_for_status()
        for number in range(2):
            done = place(base, me["jwt"], order)
            # six attempts were not enough for six faults: call it again
            if number == 0 and done.returncode:
                done = place(base, me["jwt"], order)
            assert done.returncode == 0, done.stderr
            found = client.get(
                "/v2/orders?metadata=cart:8841", headers={"Authorization": f"Bearer {me['jwt']}"}
            ).json()
            assert [json.loads(done.stdout)["id"]] == [each["id"] for each in found["orders"]]
        client.post("/_sandbox/orders/last/expire").raise_for_status()
        first, second = (json.loads(place(base, me["jwt"], order).stdout) for _ in range(2))
        assert first["id"] == second["id"] != found["orders"][0]["id"]
        assert "pending" == second["status"]


@pytest.mark.parametrize("language", [python, typescript])
def test_a_client_of_the_page_gives_up_at_once_what_no_repeat_can_mend(
    live: Live, sandbox_name: str, tmp_path: Path, language: Callable[[Path], Place]
) -> None:
    base = f"{live.url}/s/{sandbox_name}"
    with httpx2.Client(base_url=base, verify=NO_TLS, timeout=30) as client:
        me = client.get("/_sandbox/credentials").json()
        done = language(tmp_path)(
            base, me["jwt"], ORDER | {"projectId": "?", "planId": me["sample"]["planId"]}
        )
        assert "422: " in done.stderr
        asked = client.get("/_sandbox/requests?operationId=createPixOrder").json()
        assert 1 == len(asked["requests"])


@pytest.mark.night
def test_the_typescript_of_the_page_compiles(folder: Project) -> None:
    (folder.folder / "src" / "client.ts").write_text(program("ts"), encoding="utf-8")
    assert folder.compile("--noEmit") == []


def test_the_clients_have_forty_lines() -> None:
    assert {"python", "ts"} == {
        name for name in ("python", "ts") if len(blocks(name)[0].splitlines()) <= 40
    }


def test_the_table_names_every_code_that_a_repeat_may_mend_with_its_status() -> None:
    leaves = Leaves(document(), document("sandbox.yaml"))
    table = re.findall(r"^\| (.*`\w+`.*) \| ([\d, any]+) \| .+ \|$", PAGE, re.MULTILINE)
    told = {code: statuses for codes, statuses in table for code in re.findall(r"`(\w+)`", codes)}
    mended = {
        code
        for code in leaves.codes
        if any(s in (408, 429) or s >= 500 for s in leaves.statuses(code))
    }
    assert set() == mended - told.keys()
    assert set() == told.keys() - leaves.codes.keys()
    for code, statuses in told.items():
        assert statuses == "any" or {*map(str, leaves.statuses(code))} <= {*statuses.split(", ")}, (
            code
        )
