"""The verb `verify`: what it takes, what it refuses in one sentence, and what it makes of
recorded traffic.
"""

import json
import os
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from click.testing import CliRunner, Result

from stub_server.cli.command import main

from ..support.live import NO_TLS
from .exchanges import archive, example, exchange
from .watched import backend

NOBODY = "http://127.0.0.1:9"


def run(*words: str, **env: str) -> Result:
    return CliRunner().invoke(main, ["verify", *words], env={"STUB_VERIFY_TOKEN": None, **env})


def recorded(tmp_path: Path, *more: str) -> Path:
    """Traffic in which a page of customers has members that no schema names."""
    file = tmp_path / "seen.har"
    page = example("CustomerPage") | dict.fromkeys(more, 1)
    file.write_bytes(
        archive([exchange("GET", "/v2/customers", 200, page)], "https://api.example.com")
    )
    return file


def report(tmp_path: Path, *words: str) -> tuple[int, Any]:
    file = tmp_path / "report.json"
    ended = run("--har", *words, "--report", f"json={file}")
    assert file.exists(), ended.output
    return ended.exit_code, json.loads(file.read_text(encoding="utf-8"))


def test_the_credential_of_another_merchant_is_taken_from_the_environment() -> None:
    ended = run(NOBODY, "--token", "t", STUB_VERIFY_OTHER="não")
    assert (2, True) == (ended.exit_code, "cannot be sent" in ended.output)


def test_a_baseline_hides_what_it_knows(tmp_path: Path) -> None:
    seen, baseline = str(recorded(tmp_path, "extra")), tmp_path / "before.json"
    report(tmp_path, seen)
    (tmp_path / "report.json").rename(baseline)
    code, found = report(tmp_path, seen, "--baseline", str(baseline))
    assert (0, []) == (code, found["divergences"])
    seen = str(recorded(tmp_path, "extra", "other"))
    assert 1 == report(tmp_path, seen, "--baseline", str(baseline))[0]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--token", "t"],
        [NOBODY],
        ["no-address", "--token", "t"],
        ["http://user:hunter2@127.0.0.1:9", "--token", "t"],
        [NOBODY, "--token", "é"],
        [NOBODY, "--token", "t", "--header", "no colon"],
        [NOBODY, "--token", "t", "--report", "poem"],
        [NOBODY, "--token", "t", "--report", "json=no/such/directory.json"],
        [NOBODY, "--token", "t", "--baseline", "PLAIN"],
        pytest.param([NOBODY, "--token", "t", "--overlay", "PLAIN"], marks=pytest.mark.check),
        pytest.param([NOBODY, "--token", "t", "--cacert", "PLAIN"], marks=pytest.mark.check),
        pytest.param(
            [NOBODY, "--token", "t", "--only", "nothing-of-the-contract"], marks=pytest.mark.check
        ),
        pytest.param([NOBODY, "--token", "t"], marks=pytest.mark.check),
        ["http://api.example.com", "--token", "t", "--write"],
        ["http://api.example.com", "--token", "t", "--write", "--yes", "example.com"],
        ["--har", "PLAIN"],
    ],
    ids=lambda words: " ".join(words).encode("ascii", "replace").decode() or "nothing",
)
@pytest.mark.matrix
def test_what_it_cannot_run_with_is_refused_in_a_sentence(tmp_path: Path, words: list[str]) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("{ not anything", encoding="utf-8")
    ended = run(*(str(plain) if word == "PLAIN" else word for word in words))
    assert 2 == ended.exit_code, ended.output
    assert isinstance(ended.exception, SystemExit)
    assert "Error: " in ended.output
    assert "hunter2" not in ended.output


@pytest.mark.check
def test_what_a_run_records_is_judged_alike_and_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "run.har"
    with backend([]) as url:
        token = httpx2.get(f"{url}/_sandbox/credentials", timeout=30, verify=NO_TLS).json()["jwt"]
        ended = run(
            url,
            "--token",
            token,
            "--only",
            "listPlans",
            "--only",
            "getPlan",
            "--record-har",
            str(file),
        )
    assert 0 == ended.exit_code, ended.output
    assert 0o600 == os.stat(file).st_mode & 0o777
    assert token not in file.read_text(encoding="utf-8")
    assert len(orjson.loads(file.read_bytes())["log"]["entries"]) > 20
    assert 0 == run(url, "--har", str(file)).exit_code
