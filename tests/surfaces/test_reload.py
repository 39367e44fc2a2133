"""`serve --reload`: what is broken is said to whoever asks, and mending the file is enough."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx2
import pytest

from ..support.live import NO_TLS
from ..support.processes import PATIENCE, Process

pytestmark = [pytest.mark.check, pytest.mark.turn]
SCENARIO = "merchant: { name: Clube do Bolo, city: Recife }\n"
OVERLAY = (
    "overlay: 1.0.0\ninfo: { title: Ours, version: '1' }\nactions:\n  - { target: $.info, update: {"
    " title: %s } }\n"
)


@contextmanager
def reloading(*flags: str) -> Iterator[str]:
    server = Process("--reload", *flags)
    with server:
        yield server.url
        server.signal(signal.SIGTERM)
        server.said()


def until(url: str, path: str, wanted: int, said: str = "", **headers: str) -> httpx2.Response:
    """The first answer of this status that says so.

    While the server restarts, requests wait or are cut off.
    """
    end = monotonic() + PATIENCE
    while True:
        try:
            answer = httpx2.get(f"{url}{path}", headers=headers, timeout=PATIENCE, verify=NO_TLS)
            if answer.status_code == wanted and said in answer.text:
                return answer
        except httpx2.TransportError:
            answer = None
        assert monotonic() < end, answer and answer.text
        sleep(0.1)


def replaced(file: Path, text: str) -> None:
    """As editors write: another file takes the place of the old one."""
    draft = file.with_suffix(".tmp")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, file)


def test_a_broken_scenario_is_answered_and_mended(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    with reloading("--scenario", str(file)) as url:
        until(url, "/_sandbox/health", 200)
        file.write_text(SCENARIO + "monhts: 3\n", encoding="utf-8")
        refusal = until(url, "/_sandbox/health", 503, "monhts")
        body = refusal.json()
        assert (True, 503, "mine.yaml" in body["message"]) == (body["error"], body["status"], True)
        page = until(url, "/", 503, "monhts", Accept="text/html,*/*")
        assert page.headers["Content-Type"].startswith("text/html")
        replaced(file, SCENARIO.replace("Bolo", "Livro"))
        until(url, "/_sandbox/credentials", 200, "Clube do Livro")
        replaced(file, SCENARIO.replace("Bolo", "Vinho"))
        until(url, "/_sandbox/credentials", 200, "Clube do Vinho")


@pytest.mark.promise("foreign-host")
def test_a_broken_overlay_is_answered_with_file_and_line_and_mended(tmp_path: Path) -> None:
    """By no name of another machine: a page's name may be rebound to this one."""
    file = tmp_path / "ours.yaml"
    file.write_text(OVERLAY % "One", encoding="utf-8")
    with reloading("--overlay", str(file)) as url:
        until(url, "/openapi.json", 200, "One")
        replaced(file, OVERLAY % "[")
        until(url, "/v2/plans", 503, "ours.yaml:4")
        for accept in ("text/html", "*/*"):
            answer = until(url, "/", 503, Host="evil.example", Accept=accept)
            assert "ours" not in answer.text
            assert "log says why" in answer.text
        file.unlink()
        until(url, "/v2/plans", 503, "no such file")
        replaced(file, OVERLAY % "Two")
        until(url, "/openapi.json", 200, "Two")
