"""The bundled contract is kept between starts, and never served for other files than it
was made of.
"""

import json
import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stub_server.contract.bundle import contracts
from tests.support.contract import OPENAPI

LONG_AGO = 1_000_000_000


def bundled(folder: Path, file: Path) -> tuple[Any, ...]:
    """The contracts of a folder as data."""
    api, control, *_ = contracts(folder, file=file)
    return api.raw, control.raw


@cache
def shipped() -> tuple[Any, ...]:
    """The contracts as they are bundled where nothing can be kept."""
    return bundled(OPENAPI, OPENAPI / "no folder" / "contract.json")


@pytest.fixture(autouse=True)
def byte_code_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A kept contract, written long ago."""
    file = tmp_path / "contract.json"
    contracts(OPENAPI, file=file)
    os.utime(file, (LONG_AGO, LONG_AGO))
    return file


def was_used(file: Path) -> bool:
    """Whether the file was used as it was: any other is written again."""
    return file.stat().st_mtime == LONG_AGO


def test_a_kept_contract_is_the_bundled_one(file: Path) -> None:
    kept = bundled(OPENAPI, file)
    assert was_used(file)
    assert json.dumps(kept) == json.dumps(shipped()), "in the same order, too"


@pytest.mark.parametrize("changed", ["content", "name"])
def test_another_contract_is_bundled_again(file: Path, tmp_path: Path, changed: str) -> None:
    folder = tmp_path / "openapi"
    shutil.copytree(OPENAPI, folder)
    contracts(folder, file=file)
    os.utime(file, (LONG_AGO, LONG_AGO))
    entry = folder / "openapi.yaml"
    if changed == "content":
        entry.write_text(
            entry.read_text(encoding="utf-8").replace("\n  title: ", "\n  title: New ", 1),
            encoding="utf-8",
        )
    else:
        # as an editor leaves one beside a file that is open
        (folder / ".#openapi.yaml").symlink_to("gone")
    api, _ = bundled(folder, file)
    assert api["info"]["title"].startswith("New ") is (changed == "content")
    assert not was_used(file)
