"""The README: its commands are run and its answers compared; its tables name what exists."""

import re
import shutil
import socket
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from stub_server.cli import main, serve

from ..support.contract import document
from ..support.live import Live

README = Path(__file__).parents[2] / "README.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MARK = "-- answer --"


def commands() -> list[tuple[str, str]]:
    """Every command of the README's console blocks with the answer that is shown, which may be empty."""
    found: list[tuple[str, str]] = []
    for block in _BLOCK.findall(README.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith("    "):
                found[-1] = (found[-1][0] + "\n" + line, "")
            else:
                found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def as_pattern(shown: str) -> str:
    """A shown answer as a pattern: `…` is anything."""
    return ".*?".join(re.escape(part) for part in shown.split("…")) + (".*" if shown.endswith("…") else "")


def test_the_readme_shows_commands_and_answers() -> None:
    """The test below would pass on nothing."""
    shown = commands()
    assert len(shown) >= 12
    assert sum(bool(answer) for _, answer in shown) >= 7


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="the README uses bash and curl")
def test_every_command_of_the_readme_answers_as_shown(live: Live, sandbox_name: str) -> None:
    shown = commands()
    script = f"\nprintf '\\n{_MARK}\\n'\n".join(command for command, _ in shown)
    script = script.replace("http://127.0.0.1:4600", f"{live.url}/s/{sandbox_name}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        script = script.replace("8901", str(free.getsockname()[1]))
    ran = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    answers = [answer.strip() for answer in ran.stdout.split(_MARK)]
    assert len(answers) == len(shown)
    for (command, expected), answer in zip(shown, answers, strict=True):
        assert re.fullmatch(as_pattern(expected), answer, re.DOTALL), f"$ {command}\n{answer}"


def test_every_flag_stands_in_the_readme_and_no_other() -> None:
    told = re.findall(r"^\| `(--[a-z-]+)` \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    flags = [option.opts[0] for option in serve.params if isinstance(option, click.Option)]
    assert flags == told


def test_the_overlay_of_the_readme_fits_the_contract(tmp_path: Path) -> None:
    shown = re.findall(r"^```yaml\n(overlay:.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(shown) == 1
    file = tmp_path / "overlay.yaml"
    file.write_text(shown[0], encoding="utf-8")
    answer = CliRunner().invoke(main, ["check", "--overlay", str(file)])
    assert answer.exit_code == 0, answer.output
    assert f"{len(document().operations)} operations" in answer.output
