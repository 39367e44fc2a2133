"""`serve --reload`: the terminal says what is broken, requests wait, and mending the file is
enough.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx2
import pytest

from ..support.ends import within
from ..support.live import NO_TLS
from ..support.processes import PATIENCE, Process

pytestmark = [pytest.mark.check, pytest.mark.turn]
SCENARIO = "merchant: { name: Clube do Bolo, city: Recife }\n"
OVERLAY = (
    "overlay: 1.0.0\ninfo: { title: Ours, version: '1' }\nactions:\n  - { target: $.info, update: {"
    " title: %s } }\n"
)


@contextmanager
def reloading(*flags: str, says: str) -> Iterator[str]:
    """A server that restarts on changes, and says so at some time."""
    server = Process("--reload", *flags)
    with server:
        yield server.url
        server.signal(signal.SIGTERM)
        assert says in server.said()


def until(url: str, path: str, wanted: int, said: str = "") -> None:
    """The first answer of this status that says so.

    While the server restarts, requests wait or are cut off.
    """
    end = monotonic() + PATIENCE
    while True:
        try:
            answer = httpx2.get(f"{url}{path}", timeout=PATIENCE, verify=NO_TLS)
            if answer.status_code == wanted and said in answer.text:
                return
        except httpx2.TransportError:
            answer = None
        assert monotonic() < end, answer and answer.text
        sleep(0.1)


def is_served(url: str) -> bool:
    try:
        httpx2.get(f"{url}/_sandbox/health", timeout=2, verify=NO_TLS)
    except httpx2.TimeoutException:
        return False
    except httpx2.TransportError:
        return True  # a restart has cut it off
    return True


def replaced(file: Path, text: str) -> None:
    """As editors write: another file takes the place of the old one."""
    draft = file.with_suffix(".tmp")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, file)


def test_a_broken_scenario_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    with reloading("--scenario", str(file), says="monhts") as url:
        until(url, "/_sandbox/health", 200)
        file.write_text(SCENARIO + "monhts: 3\n", encoding="utf-8")
        assert within(PATIENCE, lambda: not is_served(url))
        replaced(file, SCENARIO.replace("Bolo", "Livro"))
        until(url, "/_sandbox/credentials", 200, "Clube do Livro")
        replaced(file, SCENARIO.replace("Bolo", "Vinho"))
        until(url, "/_sandbox/credentials", 200, "Clube do Vinho")


def test_a_broken_overlay_is_told_with_file_and_line_and_mended(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text(OVERLAY % "One", encoding="utf-8")
    with reloading("--overlay", str(file), says="ours.yaml:4") as url:
        until(url, "/openapi.json", 200, "One")
        replaced(file, OVERLAY % "[")
        assert within(PATIENCE, lambda: not is_served(url))
        file.unlink()
        replaced(file, OVERLAY % "Two")
        until(url, "/openapi.json", 200, "Two")
