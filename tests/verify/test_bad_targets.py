"""A target that is slow, breaks off, limits or speaks no HTTP: the run ends in time, says why, and
cleans up.
"""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from stub_server.tools.verify.exchange import Answer, Request
from stub_server.tools.verify.forms import FORMS

from ..support.forked import Popen
from ..support.live import NO_TLS
from .backend import Ask
from .bad import Speak, Treat, fronting, speaking
from .runs import ROOT, Outcome, backend, credential, verify
from .scripted import received
from .watched import watched

pytestmark = [pytest.mark.check, pytest.mark.turn]
BUDGET = 8
TIDYING = 20
STARTING = 60  # seconds until the command runs on a busy machine, and until its report is written
TOKEN = "verify.a.credential"
LISTS = {
    "/api-keys": "api_keys",
    "/v2/customers": "customers",
    "/v2/plans": "plans",
    "/v2/orders": "orders",
    "/v2/projects": "projects",
    "/v2/products": "products",
    "/v2/webhooks": "webhooks",
}


@pytest.fixture(name="sandbox")
def _sandbox() -> Iterator[str]:
    with backend("--scenario", "empty") as url:
        yield url


def left(url: str) -> dict[str, str]:
    """What is at a sandbox but for what is archived: the whole record by its path."""
    found: dict[str, str] = {}
    headers = {"Authorization": f"Bearer {credential(url)}"}
    with httpx2.Client(base_url=url, headers=headers, timeout=60, verify=NO_TLS) as api:
        for path, name in LISTS.items():
            for page in range(1, 100):
                body = api.get(path, params={"limit": 100, "page": page}).json()
                records = body.get("data", body)[name]
                found |= {
                    f"{path}/{each['id']}": json.dumps(each)
                    for each in records
                    if each.get("status") != "archived"
                }
                if len(records) < 100:
                    break
    return found


def ended_in_time(outcome: Outcome, exits: set[int], budget: float = BUDGET) -> None:
    """It says why it learned so little, without a traceback, and without a credential."""
    assert outcome.exit in exits, (outcome.output, outcome.divergences)
    assert outcome.seconds < budget + TIDYING + STARTING
    assert "Traceback" not in outcome.output
    assert "Exception" not in outcome.output
    assert TOKEN not in outcome.output
    assert len(outcome.output.strip().splitlines()[-1]) > 40, outcome.output


class Fronted(NamedTuple):
    """A treatment of requests, what the run may end with, and a fact of the sentence
    that says why.
    """

    treat: Treat
    exits: set[int]
    fact: str


FRONTED = {
    "drops every third request": Fronted(
        lambda n, *_: "pass" if n % 3 else "drop", {3}, "no answer"
    ),
    "loses every seventh answer": Fronted(
        lambda n, *_: "pass" if n % 7 else "lose", {3}, "no answer"
    ),
    "drops all after a while": Fronted(
        lambda n, *_: "pass" if n < 120 else "drop", {3}, "broke off"
    ),
    "drops all": Fronted(lambda n, *_: "drop", {2}, "broke off"),
}


@pytest.mark.parametrize(
    "name",
    [
        name if name == "drops every third request" else pytest.param(name, marks=pytest.mark.night)
        for name in FRONTED
    ],
)
def test_what_a_troubled_target_was_made_to_keep_is_told(sandbox: str, name: str) -> None:
    treat, exits, fact = FRONTED[name]
    before = left(sandbox)
    with fronting(sandbox, treat) as url:
        outcome = verify(url, "--budget", str(BUDGET))
    ended_in_time(outcome, exits)
    assert fact in outcome.output
    assert [] == outcome.divergences
    known = {*before, *outcome.report.get("left_behind", [])}
    kept = {path: record for path, record in left(sandbox).items() if path not in known}
    if "cut short" not in outcome.output:
        assert not {path for path, record in kept.items() if "verify-" in record}
        assert not kept or "did not answer" in outcome.output, kept


@pytest.mark.parametrize(
    ("does", "asked", "found"),
    [
        pytest.param("lose", "POST /v2/plans", "transport", marks=pytest.mark.night),
        ("empty", "POST /v2/projects", "schema"),
        ("odd", "GET /v2/projects?", "schema"),
    ],
)
def test_an_operation_that_gives_no_answer_or_no_id_departs(
    sandbox: str, does: str, asked: str, found: str
) -> None:
    """The run looks records up by their ids."""

    def treat(_: int, method: str, path: str) -> str:
        return does if f"{method} {path}".startswith(asked) else "pass"

    with fronting(sandbox, treat) as url:
        tag = asked.partition("/v2/")[2].rstrip("?").title()
        outcome = verify(url, "--only", tag, "--budget", "60")
    assert (1, False) == (outcome.exit, "Traceback" in outcome.output)
    assert found in [each["class"] for each in outcome.divergences]


def answer(status: str, headers: str, body: bytes) -> Speak:
    """Says the same to every request."""
    head = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode()

    def speak(connection: socket.socket) -> None:
        while received(connection):
            connection.sendall(head + body)

    return speak


def once(data: bytes) -> Speak:
    """Says the same, and ends the connection."""

    def speak(connection: socket.socket) -> None:
        received(connection)
        connection.sendall(data)

    return speak


def silent(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass


def echoing(connection: socket.socket) -> None:
    connection.sendall(received(connection))


FOREIGN: dict[str, tuple[Speak, str]] = {
    "redirects": (
        answer("302 Found", "Location: https://elsewhere.invalid/\r\n", b""),
        "redirects",
    ),
    "HTML": (answer("200 OK", "Content-Type: text/html\r\n", b"<!doctype html><p>Hello"), "JSON"),
    "10 MB": (answer("200 OK", "Content-Type: application/json\r\n", b" " * 10_000_000), "8 MB"),
    "another credential": (
        answer("401 No", "Content-Type: application/json\r\n", b"{}"),
        "refuses the credential",
    ),
    "an hour of patience": (answer("429 Too Many", "Retry-After: 3600\r\n", b""), "3600 s"),
    "silence": (silent, "does not answer"),
    "an echo": (echoing, "not HTTP"),
    "a body cut short": (
        once(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"),
        "broke off",
    ),
    "a coding of a coding": (
        answer("200 OK", "Content-Encoding: gzip, gzip\r\n", b"{}"),
        "coding within another",
    ),
    "a broken coding": (answer("200 OK", "Content-Encoding: gzip\r\n", b"{}"), "coding"),
}


@pytest.mark.parametrize(
    "name",
    [name if name == "HTML" else pytest.param(name, marks=pytest.mark.night) for name in FOREIGN],
)
def test_what_is_no_api_is_not_compared(name: str) -> None:
    speak, fact = FOREIGN[name]
    with speaking(speak) as url:
        outcome = verify(url, "--budget", str(BUDGET), token=TOKEN)
    ended_in_time(outcome, {2})
    assert fact in outcome.output
    assert [] == outcome.report.get("divergences", [])


@pytest.mark.promise("no-credential-in-report")
@pytest.mark.parametrize(
    ("status", "media", "said"),
    [
        ("404 No", "application/json", {"error": True, "message": "No.", "code": "SECRET"}),
        ("200 OK", "application/json", {"SECRET": 1, "customers": [{"id": "a", "SECRET": 1}]}),
        ("200 OK", "application/SECRET", {}),
    ],
)
def test_no_credential_is_in_any_file_wherever_an_answer_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, media: str, said: object
) -> None:
    """As a code, as the name of a member, and as a media type: each credential of the run."""
    secrets = (TOKEN, "Verify.The.Other.Merchant", "Verify-The-Gateway-Of-All")
    monkeypatch.setenv("STUB_VERIFY_OTHER", secrets[1])
    words = ["--header", f"X-Gateway: {secrets[2]}", "--record-har", str(tmp_path / "seen.har")]
    words += ["--write-overlay", str(tmp_path / "overlay.yaml")]
    for form in FORMS:
        words += ["--report", f"{form}={tmp_path / form}"]
    body = json.dumps(said).replace("SECRET", "+".join(secrets)).encode()
    kind = f"Content-Type: {media.replace('SECRET', '+'.join(secrets))}\r\n"
    with speaking(answer(status, kind, body)) as url:
        outcome = verify(url, *words, "--only", "Customers", "--budget", "3", token=TOKEN)
    assert outcome.exit in (1, 2)
    for file in tmp_path.iterdir():
        text = f"{file.read_text()} {outcome.output}".lower()
        assert not [each for each in secrets if each.lower() in text], file


def test_a_deletion_of_nothing_that_is_accepted_does_not_end_a_run() -> None:
    async def idempotent(request: Request, ask: Ask) -> Answer:
        found = await ask(request)
        is_nothing = request.method == "DELETE" and found.status == 404
        return Answer(204) if is_nothing else found

    run = watched(idempotent, write=True, only=("Webhooks",)).run
    assert "deleteWebhook" in run.groups
    assert [] == run.cleanup.left_behind


@pytest.mark.parametrize(
    "numbers",
    [
        [signal.SIGINT],
        pytest.param([signal.SIGTERM], marks=pytest.mark.night),
        pytest.param([signal.SIGINT, signal.SIGTERM], marks=pytest.mark.night),
    ],
)
def test_a_signal_ends_a_run_in_order(tmp_path: Path, numbers: list[signal.Signals]) -> None:
    """The second ends the cleaning up."""
    file = tmp_path / "report.json"
    with backend("--scenario", "empty", "--delay", "0.1") as url:
        before = left(url)
        command = [
            sys.executable,
            "-m",
            "stub_server",
            "verify",
            url,
            "--token",
            credential(url),
            "--write",
        ]
        running = Popen(
            [*command, "--report", f"json={file}"],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 60
        while len(left(url)) < len(before) + 8:
            assert time.monotonic() < until
        began = time.monotonic()
        for number in numbers:
            running.send_signal(number)
            time.sleep(0.3)
        output = "".join(running.communicate(timeout=TIDYING + STARTING))
        assert time.monotonic() - began < TIDYING + STARTING
        assert running.returncode == 2, output
        assert "Traceback" not in output
        assert "Interrupted" in output
        report = json.loads(file.read_text(encoding="utf-8"))
        assert report["requests"] > 50
        if len(numbers) < 2:
            assert "cut short" not in output
            assert left(url).keys() <= {*before, *report["left_behind"]}
