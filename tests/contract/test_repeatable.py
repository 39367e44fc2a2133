"""Two runs with one seed from one state are the same exchange for exchange, but for
tokens and dates.
"""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..support.live import NO_TLS
from .__main__ import PHASES, server
from .runner import run

pytestmark = pytest.mark.check

# What follows the real time, and the numbers that schemathesis gives its requests.
REAL = ("authorization", "date", "x-schemathesis-testcaseid")


def exchanges(file: Path) -> list[Any]:
    """The requests and answers of a HAR."""
    return [
        (
            entry["request"]["method"],
            entry["request"]["url"],
            kept(entry["request"]["headers"]),
            entry["request"].get("postData"),
            entry["response"]["status"],
            kept(entry["response"]["headers"]),
            entry["response"]["content"].get("text"),
        )
        for entry in json.loads(file.read_text())["log"]["entries"]
    ]


def kept(headers: list[Any]) -> list[tuple[str, str]]:
    return [(h["name"], h["value"]) for h in headers if h["name"].lower() not in REAL]


@pytest.mark.night
def test_the_same_seed_gives_the_same_exchanges_after_a_reset(tmp_path: Path) -> None:
    with server() as url:
        first, second = judged(url, tmp_path / "first.har"), judged(url, tmp_path / "second.har")
    assert len(first) > 300
    assert first == second


def judged(url: str, har: Path) -> list[Any]:
    httpx2.post(f"{url}/_sandbox/reset", timeout=60, verify=NO_TLS).raise_for_status()
    options = ["--include-path-regex=^/v2/products", "--max-examples=5", "--report=har"]
    done = run(url, PHASES, har.with_suffix(".ndjson"), *options, f"--report-har-path={har}")
    assert done.code == 0, done.output[-5000:]
    return exchanges(har)
