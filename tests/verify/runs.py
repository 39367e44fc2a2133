"""Runs of `stub-server verify` against a mutated sandbox, each in processes of its own, and what
they must find.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from ..support.contract import document
from ..support.forked import Popen, run
from ..support.live import NO_TLS
from ..support.make import Json
from .mutants import Mutant

ROOT = Path(__file__).parents[2]
LONGEST = 900.0  # seconds after which a run asks nothing more; a busy machine may need most of them
COVERAGE = 95.0  # per cent of what can be reached that a run against our own server must reach
LIKE_A_PROXY = ("--delay", "0.05")
"""Flags of a server that is as slow as through a proxy."""
CREDENTIALS = ("jwt", "full key", "key of five scopes", "key of one project", "public key")
FIVE = ["customers:read", "customers:write", "plans:read", "projects:read", "orders:read"]
_PATIENCE = 60.0


class Outcome(NamedTuple):
    """How a run ended.

    `report` is the JSON report, empty where none was written; `output` is what was printed.
    """

    exit: int
    seconds: float
    report: Json
    output: str

    @property
    def divergences(self) -> list[Json]:
        """Those of the report."""
        found: list[Json] = self.report.get("divergences", [])
        return found


@contextmanager
def backend(*flags: str, mutants: Collection[str] = ()) -> Iterator[str]:
    """A mutated sandbox until the block ends; answers its address."""
    chosen = [part for name in mutants for part in ("--mutant", name)]
    command = [sys.executable, "-m", "tests.verify.server", *chosen, *flags]
    with Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            assert first.startswith("ready "), f"The server did not start: {' '.join(command)}"
            yield first.split()[1]
        finally:
            process.terminate()
            process.communicate(timeout=_PATIENCE)


def credential(url: str) -> str:
    """What opens everything at a sandbox."""
    said = (
        httpx2.get(f"{url}/_sandbox/credentials", timeout=_PATIENCE, verify=NO_TLS)
        .raise_for_status()
        .json()
    )
    return str(said["jwt"])


def credentials(url: str) -> dict[str, str]:
    """By kind: of a person, and API keys with all scopes, with five, of one project, and
    a public one.
    """
    jwt = credential(url)
    scopes = [scope["name"] for scope in document().scopes if scope["assignable"]]
    with httpx2.Client(
        base_url=url, headers={"Authorization": f"Bearer {jwt}"}, timeout=_PATIENCE, verify=NO_TLS
    ) as api:

        def key(**more: Any) -> Json:
            made = (
                api.post("/api-keys", json={"name": "Loja", "scopes": scopes, **more})
                .raise_for_status()
                .json()
            )
            found: Json = made["api_key"]
            return found

        project = (
            api.post("/v2/projects", json={"name": "Loja"})
            .raise_for_status()
            .json()["data"]["project"]["id"]
        )
        full = key()
        keys = full, key(scopes=FIVE), key(allowed_projects=[project])
    return dict(
        zip(
            CREDENTIALS,
            (jwt, *(each["private_key"] for each in keys), full["public_key"]),
            strict=True,
        )
    )


def verify(url: str, *flags: str, token: str | None = None, writes: bool = True) -> Outcome:
    """Judge a server with all that the command may do, or as it only reads; without a token with
    that of a sandbox.
    """
    token = credential(url) if token is None else token
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        command = [sys.executable, "-m", "stub_server", "verify", url, "--token", token]
        command += ["--write", "--charges", "--yes", httpx2.URL(url).host] if writes else []
        command += ["--report", f"json={file}", "--budget", str(LONGEST), *flags]
        started = time.monotonic()
        try:
            ended = run(command, cwd=ROOT, timeout=LONGEST + _PATIENCE)
        except subprocess.TimeoutExpired:
            return Outcome(-1, time.monotonic() - started, {}, "It never ended.")
        seconds = time.monotonic() - started
        text = file.read_text(encoding="utf-8") if file.is_file() else "{}"
        assert token not in text + ended.stdout + ended.stderr, "the credential is shown"
        report = json.loads(text)
    return Outcome(ended.returncode, seconds, report, ended.stdout + ended.stderr)


def finds(mutant: Mutant, divergence: Json, among: Collection[Mutant]) -> bool:
    """Whether a divergence names a mutant: its class, and its operations and no other, or
    everywhere.

    Those of `among` with the same class may be one divergence.
    """
    if divergence["class"] not in mutant.kinds:
        return False
    if not mutant.operations:
        return "everywhere" in divergence["title"].lower()
    allowed = {name for other in among if other.kinds & mutant.kinds for name in other.operations}
    return (
        bool(mutant.operations & {*divergence["operations"]})
        and {*divergence["operations"]} <= allowed
    )


def missed(outcome: Outcome, mutants: Collection[Mutant], beside: int | None) -> list[str]:
    """What a run against these mutants should have done otherwise.

    At most `beside` more divergences are allowed.
    """
    wrong = (
        [] if outcome.exit == 1 else [f"exit {outcome.exit} in place of 1: {_last(outcome.output)}"]
    )
    named = [
        found
        for found in outcome.divergences
        if any(finds(mutant, found, mutants) for mutant in mutants)
    ]
    for mutant in mutants:
        if not any(finds(mutant, found, mutants) for found in named):
            wrong.append(f"{mutant.name} is not named")
    others = [shown(found) for found in outcome.divergences if found not in named]
    if beside is not None and len(outcome.divergences) > len(mutants) + beside:
        wrong.append(f"too many beside: {'; '.join(others) or 'the same again'}")
    return wrong


def departed(outcome: Outcome) -> list[str]:
    """What a run against a sandbox without mutants should have done otherwise."""
    wrong = (
        [] if outcome.exit == 0 else [f"exit {outcome.exit} in place of 0: {_last(outcome.output)}"]
    )
    wrong += [shown(found) for found in outcome.divergences]
    coverage = outcome.report.get("coverage", 0.0)
    if coverage < COVERAGE:
        wrong.append(f"reached {coverage:.1f} % of {COVERAGE:.0f} %")
    return wrong


def shown(divergence: Json) -> str:
    """Class and operations of a divergence."""
    operations = divergence["operations"]
    named = ", ".join(operations[:3]) + (
        f" and {len(operations) - 3} more" if len(operations) > 3 else ""
    )
    return (
        f"{divergence['class']}"
        f" {'everywhere' if 'everywhere' in divergence['title'].lower() else named}"
    )


def _last(output: str) -> str:
    return next(
        (line for line in reversed(output.splitlines()) if line.strip()), "nothing was printed"
    )
