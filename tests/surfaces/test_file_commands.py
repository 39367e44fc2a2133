"""`stub-server export` and `import`: what they write, print and answer, and how they exit."""

import stat
from pathlib import Path

import httpx2
import pytest

from ..support.command import run
from ..support.files import exported
from ..support.make import Maker


def test_a_sandbox_is_written_to_a_file_and_read_from_it(
    to: list[str], control: httpx2.Client, make_customer: Maker, tmp_path: Path
) -> None:
    make_customer()
    file = tmp_path / "bug.sandbox"
    said = run("export", "-o", str(file), *to)
    assert (0, exported(control)) == (said.exit_code, file.read_bytes())
    assert (
        f"{file} is written from the sandbox {to[-1]}: {file.stat().st_size:,} bytes.\n"
        == said.output
    )
    assert 200 == control.post("/reset").status_code
    said = run("import", str(file), *to)
    assert 0 == said.exit_code, said.output
    assert said.output.startswith(f"{to[-1]} is the sandbox of the file: step 1, ")
    assert control.get("/credentials").json()["private_key"] in said.output
    assert file.read_bytes() == exported(control)


@pytest.mark.parametrize("verb", [("export",), ("record",), ("requests", "har")])
def test_a_file_is_its_owners_alone(to: list[str], verb: tuple[str, ...], tmp_path: Path) -> None:
    """One that was there before and open to others, too."""
    old = tmp_path / "old"
    new = tmp_path / "new"
    old.write_bytes(b"")
    old.chmod(0o644)
    for file in (old, new):
        assert 0 == run(*verb, "-o", str(file), *to).exit_code
        assert (0o600, True) == (stat.S_IMODE(file.stat().st_mode), file.stat().st_size > 0)
