"""README and docs: their commands are run and their answers compared; their tables and links name
what exists.
"""

import doctest
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stub_server.cli.command import main
from stub_server.core.clock import SECOND
from stub_server.domain.orders import DEFAULT_FAILURE, FAILURES, MAGIC

from ..support.contract import document
from ..support.live import Live

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONSOLE = [page for page in PAGES if "```console" in page.read_text(encoding="utf-8")]
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MARK = "-- answer --"


def commands(page: Path) -> list[tuple[str, str]]:
    """Every command of a page's console blocks with the answer that is shown, which
    may be empty.
    """
    found = []
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
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
    return ".*?".join(re.escape(part) for part in shown.split("…")) + (
        ".*" if shown.endswith("…") else ""
    )


def test_the_pages_show_commands_and_answers() -> None:
    """The test below would pass on nothing."""
    shown = [command for page in CONSOLE for command in commands(page)]
    assert len(CONSOLE) >= 7
    assert sum(bool(answer) for _, answer in shown) >= 20


@pytest.mark.check
@pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("bash")), reason="the pages use bash and curl"
)
@pytest.mark.parametrize("page", CONSOLE, ids=lambda page: page.stem)
@pytest.mark.matrix
def test_every_command_of_a_page_answers_as_shown(
    live: Live, sandbox_name: str, credentials: dict[str, object], page: Path
) -> None:
    """In a sandbox that exists, as `default` does."""
    shown = commands(page)
    script = f"\nprintf '\\n{_MARK}\\n'\n".join(command for command, _ in shown)
    script = script.replace("http://127.0.0.1:4600", f"{live.url}/s/{sandbox_name}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        script = script.replace("8901", str(free.getsockname()[1]))
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "STUB_SERVER": live.url,
        "STUB_SANDBOX": sandbox_name,
    }
    bash = ["bash", "-euo", "pipefail", "-c", script]
    ran = subprocess.run(bash, env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    answers = [answer.strip() for answer in ran.stdout.split(_MARK)]
    assert len(answers) == len(shown)
    for (command, expected), answer in zip(shown, answers, strict=True):
        assert re.fullmatch(as_pattern(expected), answer, re.DOTALL), f"$ {command}\n{answer}"


SESSIONS = [
    page
    for page in (*PAGES, ROOT / "fixtures/scenarios/README.md")
    if ">>> " in page.read_text("utf-8")
]


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.parent.name)
def test_every_python_session_of_a_page_answers_as_shown(page: Path) -> None:
    """As the interpreter does that somebody types it into."""
    shown = "".join(
        re.findall(
            r"^```pycon\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
    )
    session = doctest.DocTestParser().get_doctest(shown.replace("…", "..."), {}, page.name, None, 0)
    assert len(session.examples) >= 3
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=told.append)
    assert [] == told


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert 150 >= len(PAGES[0].read_text(encoding="utf-8").splitlines())


def test_the_pages_written_by_hand_are_read_in_two_hours() -> None:
    """As `wc -w` counts, code included: what one page says, no other says again."""
    pages = [page for page in PAGES if page.parent.name != "reference"]
    pages += [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    assert 19_000 >= sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_to_a_file_and_a_heading_of_it(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?://)([^)]+)", page.read_text(encoding="utf-8")):
        name, _, place = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if place:
            assert place in anchors(target), link


def anchors(page: Path) -> list[str]:
    """The headings of a page as addresses of GitHub."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_every_page_is_reached_from_the_readme() -> None:
    """The README leads to the index, and the index to every page as a whole."""
    assert "(docs/README.md)" in PAGES[0].read_text(encoding="utf-8")
    linked = re.findall(
        r"\]\(([^)#]+)\)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    )
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in PAGES[1:]} - {"README.md"}
    assert set() == pages - {*linked}


def test_the_page_of_payments_names_the_failures_of_each_method() -> None:
    page = (ROOT / "docs" / "payments.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (`.+`) \|$", page, re.MULTILINE)
    named = {
        method: re.findall(r"\w+", codes) for method, codes in rows if method in DEFAULT_FAILURE
    }
    assert DEFAULT_FAILURE == {method: codes[0] for method, codes in named.items()}
    for method, codes in named.items():
        assert {code for code, about in FAILURES.items() if method in about["methods"]} == {*codes}


def rows(page: str, heading: str) -> dict[str, str]:
    """The table below a heading: what stands as code in the first column, and the second column."""
    text = (
        (ROOT / "docs" / page)
        .read_text(encoding="utf-8")
        .partition(f"## {heading}\n")[2]
        .partition("\n## ")[0]
    )
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE))


def test_the_pages_list_magic_words_presets_and_scopes_as_they_are() -> None:
    told = rows("payments.md", "Choose by e-mail address")
    assert {magic.name for magic in MAGIC} == told.keys()
    for magic in MAGIC:
        waits = (magic.pays, magic.refunds, magic.life)
        seconds = [wait // SECOND for wait in waits if wait]
        assert seconds == [int(each) for each in re.findall(r"(\d+) second", told[magic.name])]
        assert magic.fails == ("failed" in told[magic.name])
    presets = document("sandbox.yaml").schema("FaultPreset")["x-presets"]
    assert presets == rows("faults.md", "Presets and the shell")
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert {scope["name"] for scope in document().scopes} == {
        *re.findall(r"`(\w+:(?:read|write))`", page)
    }


def test_the_overlay_of_the_docs_fits_the_contract(tmp_path: Path) -> None:
    page = ROOT / "docs" / "overlays.md"
    shown = re.findall(
        r"^```yaml\n(overlay:.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(shown) == 1
    file = tmp_path / "overlay.yaml"
    file.write_text(shown[0], encoding="utf-8")
    answer = CliRunner().invoke(main, ["check", "--overlay", str(file)])
    assert answer.exit_code == 0, answer.output
    assert f"{len(document().operations)} operations" in answer.output
