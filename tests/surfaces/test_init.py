"""`stub-server init`: what it writes, and that it overwrites nothing."""

from pathlib import Path

from click.testing import CliRunner

from stub_server.cli import main
from stub_server.commands.offline_verbs import TOOLS

from ..contract.pack import PACK


def test_every_file_of_the_folder_is_written_where_its_tool_reads_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["init", "schemathesis", str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    assert done.output.split() == [str(tmp_path / "new" / place) for place in TOOLS["schemathesis"].values()]
    assert {file.name for file in PACK.iterdir() if file.is_file()} == set(TOOLS["schemathesis"])
    for name, place in TOOLS["schemathesis"].items():
        assert (PACK / name).read_bytes() == (tmp_path / "new" / place).read_bytes()


def test_a_file_that_exists_is_named_and_none_is_written(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text("mine")
    done = CliRunner().invoke(main, ["init", "schemathesis", str(tmp_path)])
    assert (2, True) == (done.exit_code, f"{tmp_path / 'schemathesis.toml'} exists already" in done.output)
    assert [tmp_path / "schemathesis.toml"] == list(tmp_path.iterdir())
    assert (tmp_path / "schemathesis.toml").read_text() == "mine"


def test_a_link_that_leads_nowhere_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "sandbox_hooks.py").symlink_to(elsewhere)
    done = CliRunner().invoke(main, ["init", "schemathesis", str(tmp_path / "new")])
    assert (2, True) == (done.exit_code, "sandbox_hooks.py exists already" in done.output)
    assert not elsewhere.exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(main, ["init", "schemathesis", str(tmp_path / "file" / "below")])
    assert done.exit_code == 2
    assert "Error:" in done.output
