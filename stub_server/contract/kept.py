"""Keeps the bundled contract from start to start: bundling its 420 files takes 160 ms, checking and reading it 15."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import cache_from_source
from pathlib import Path

import orjson

from .bundle import load
from .source import Json, read

FILE = Path(cache_from_source(__file__)).with_name("contract.json")
"""Among the byte code of this package, which Python keeps in the same way, or is asked not to."""


def contracts(folder: Path, file: Path = FILE) -> tuple[dict[str, Json], dict[str, Json]]:
    """The API contract and the control contract of a folder, without overlays, as `bundle.load` returns them.

    They come from `file` if it was made of the same files by the same code. Otherwise it is written, unless Python
    writes no byte code or the place is not writable. Raises ContractError, as `bundle.load`.
    """
    sources = _digest(folder)
    with suppress(OSError):
        head, _, kept = file.read_bytes().partition(b"\n")
        if head == _head(sources, kept):
            api, control = orjson.loads(kept)
            return api, control
    read_once = cache(read)  # the two share files
    api = load(folder / "openapi.yaml", (), read_once)
    control = load(folder / "sandbox.yaml", (), read_once, api)
    if not sys.dont_write_bytecode and _digest(folder) == sources:  # else a file has changed meanwhile
        made = orjson.dumps([api, control])
        with suppress(OSError):
            file.write_bytes(_head(sources, made) + b"\n" + made)
    return api, control


def _head(sources: bytes, kept: bytes) -> bytes:
    """The first line of the file. No other content has it, so a file that is half written is not used."""
    return blake2b(sources + kept).hexdigest().encode()


def _digest(folder: Path) -> bytes:
    """Of the files of a contract, and of the code that bundles them."""
    digest = blake2b()
    for path in (*_files(folder, ".yaml"), *_files(Path(__file__).parent, ".py")):
        digest.update(f"\n{path}\n".encode())
        with suppress(OSError), open(path, "rb") as file:  # if it is needed, bundling refuses it
            digest.update(blake2b(file.read()).digest())
    return digest.digest()


def _files(folder: Path, suffix: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(suffix))
