"""docs/partners.md: the receivers that it shows run, and keep every rule of a certificate."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from stub_server.cli.command import main

from ..receivers.running import KEY
from ..support.live import Live

PAGE = (Path(__file__).parents[2] / "docs" / "partners.md").read_text(encoding="utf-8")
PROGRAMS = {
    "python": ("receiver.py", sys.executable),
    "js": ("receiver.mjs", "node"),
    "php": ("receiver.php", "php"),
}
pytestmark = [pytest.mark.check, pytest.mark.turn]


@contextmanager
def receiver(language: str, folder: Path) -> Iterator[str]:
    """The page's receiver in a language, started as the page says; its address."""
    name, program = PROGRAMS[language]
    (shown,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (folder / name).write_text(shown, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "-S", f"127.0.0.1:{port}", name] if language == "php" else [program, name]
    env = os.environ | {"KEY": KEY, "PORT": str(port), "TMPDIR": str(folder)}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=output)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/hook"
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_receiver_of_the_page_is_certified(
    language: str, live: Live, sandbox_name: str, tmp_path: Path
) -> None:
    """With the page's own command, which counts the lines of its log."""
    if shutil.which(PROGRAMS[language][1]) is None:
        pytest.skip(f"{PROGRAMS[language][1]} is not installed")
    (program,) = re.findall(r'--effects-command "(.*)"$', PAGE, re.MULTILINE)
    program = program.replace("work.log", str(tmp_path / "output"))
    with receiver(language, tmp_path) as url:
        asked = [
            "--signing-key",
            KEY,
            "--effects-command",
            program,
            "--server",
            live.url,
            "--sandbox",
            sandbox_name,
        ]
        said = CliRunner().invoke(main, ["certify", url, *asked])
    assert 0 == said.exit_code, said.output
    assert "15 passed, 0 failed, 0 not applicable, 0 unknown" in said.output.splitlines()[0]
