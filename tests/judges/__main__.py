"""`make judges`: what tools that are not ours say of the contract and of the server that follows
it.

Redocly and Spectral lint the contract, as it is served and as its files lie. Prism stands between
client and server and validates both, and Specmatic sends every example. A judge whose runtime is missing is skipped, and that is said. Exit code 1 for a
finding.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from ..contract.__main__ import server
from ..support.contract import OPENAPI
from ..support.install import from_npm
from .prism import proxied

HERE = Path(__file__).parent
_INSTALLED = HERE.parents[1] / "build" / "judges"
_MANY = 1_000  # problems that redocly tells
Finding = Iterator[str]


def lint(bin_: Path, folder: Path, url: str) -> Finding:
    """Redocly: every rule that it recommends, of both contracts, but for what is listed
    with its reason.
    """
    listed: list[dict[str, str]] = yaml.safe_load((HERE / "listed.yaml").read_text())
    seen = set()
    for kind, name in _contracts(folder, url):
        options = (f"--config={HERE / 'redocly.yaml'}", f"--max-problems={_MANY}")
        for problem in _linted(bin_ / "redocly", folder, name, *options)["problems"]:
            rule = problem["ruleId"]
            place = problem["location"][0].get("pointer", "").removeprefix("#")
            of_kind = [
                entry for entry in listed if entry["rule"] == rule and entry.get("of", kind) == kind
            ]
            known = [entry for entry in of_kind if re.search(entry["at"], place)]
            seen |= {entry["why"] for entry in known}
            if not known:
                yield f"{rule}: {problem['message']} at {place} of {name}"
    for entry in listed:
        if entry["why"] in seen:
            print(f"{entry['rule']} is let pass at {entry['at']}: {entry['why']}")
        else:
            yield f"listed.yaml has {entry['rule']} at {entry['at']}, which redocly does not find."


def spectral(bin_: Path, folder: Path, url: str) -> Finding:
    """Spectral: every rule that it has for OpenAPI, of both contracts, and nothing is let pass."""
    for _, name in _contracts(folder, url):
        options = (f"--ruleset={HERE / 'spectral.yaml'}", "--quiet")
        for problem in _linted(bin_ / "spectral", folder, name, *options):
            yield (
                f"{problem['code']}: {problem['message']} at {'/'.join(map(str, problem['path']))}"
                f" of {name}"
            )


def _linted(tool: Path, folder: Path, name: Path, *options: str) -> Any:
    """What a tool says of a contract."""
    command = [str(tool), "lint", str(name), "--format=json", *options]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return json.loads(ran.stdout)


def _contracts(folder: Path, url: str) -> list[tuple[str, Path]]:
    """Both contracts as they are served and as their files lie."""
    (folder / "control.json").write_bytes(
        httpx2.get(f"{url}/_sandbox/openapi.json", timeout=30).content
    )
    served = [("served", folder / name) for name in ("contract.json", "control.json")]
    return served + [("files", OPENAPI / name) for name in ("openapi.yaml", "sandbox.yaml")]


def proxy(bin_: Path, folder: Path, url: str) -> Finding:
    """Prism: it stands between client and server while every example is sent."""
    yield from proxied(bin_, folder / "contract.json", url)
    # A contract that no answer satisfies shows whether answers are looked at.
    impossible: Any = json.loads((folder / "contract.json").read_text())
    count = 0
    for item in impossible["paths"].values():
        for operation in item.values():
            for status, answer in operation.get("responses", {}).items():
                if status in ("200", "201") and "content" in answer:
                    answer["content"]["application/json"]["schema"] = {
                        "type": "object",
                        "required": ["no_such_member"],
                    }
            count += 1
    (folder / "impossible.json").write_text(json.dumps(impossible))
    refused = len(
        {finding.partition(":")[0] for finding in proxied(bin_, folder / "impossible.json", url)}
    )
    if refused != count:
        yield f"Prism looked at the answers of {refused} operations, not of {count}."


def examples(bin_: Path, folder: Path, url: str) -> Finding:
    """Specmatic: every example of a request is sent and answered as the contract says."""
    if shutil.which("java") is None:
        pytest.skip("java is not on this machine")
    token = httpx2.get(f"{url}/_sandbox/credentials", timeout=30).json()["jwt"]
    command = [str(bin_ / "specmatic"), "test", "contract.json", f"--testBaseURL={url}"]
    tokens = dict.fromkeys(("jwt", "bearer", "publicBearer"), token)
    ran = subprocess.run(
        command,
        cwd=folder,
        env=dict(os.environ) | tokens,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    text = ran.stdout + ran.stderr
    count = re.search(r"Tests run: (\d+), Successes: (\d+)", text)
    if count is not None:
        print(count[0])
    if count is None or count[1] != count[2] or int(count[1]) < 61:
        yield count[0] if count else text[-3000:]
    yield from re.findall(r"^Scenario: .* has FAILED", text, re.MULTILINE)
    issues = re.search(r"read successfully but with some issues\n\n(.*?)\n\n", text, re.DOTALL)
    yield from (line.strip() for line in issues[1].splitlines()) if issues else ()


JUDGES: dict[str, Callable[[Path, Path, str], Finding]] = {
    "redocly lint": lint,
    "spectral lint": spectral,
    "prism proxy": proxy,
    "specmatic test": examples,
}


def main() -> int:
    """Each judge on a world of its own, then what clients are made of the contract."""
    bad = False
    for name, judge in JUDGES.items():
        with server() as url, tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "contract.json").write_bytes(
                httpx2.get(f"{url}/openapi.json", timeout=30).content
            )
            try:
                found = list(judge(from_npm(HERE, _INSTALLED) / ".bin", folder, url))
            except pytest.skip.Exception as missing:
                print(f"{name}: skipped, {missing}.", flush=True)
                continue
        bad = bad or bool(found)
        print(f"{name}: {len(found) or 'no'} findings.", *found, sep="\n  ", flush=True)
    clients = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--night", "tests/clients"], check=False
    )
    return int(bad or clients.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
