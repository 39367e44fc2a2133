"""The format of files: lines of JSON, packed with gzip, which has a checksum."""

import gzip
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any

import orjson

from ..core.record import Body, has_more_values, is_deeper_than
from ..version import __version__

FORMAT = "stub.sandbox"
VERSION = 14
RECORDING = "stub.recording"  # a sandbox and what was asked of it afterwards
MEDIA = "application/vnd.stub.sandbox+gzip"
MOST_BYTES = 256 * 1024 * 1024  # packed, and unpacked
_LIMIT = f"{MOST_BYTES // (1024 * 1024)} MiB unpacked"
LONGEST_LINE = 4 * 1024 * 1024  # bytes: four of the largest bodies. Reading one holds up everybody
MOST_VALUES = 100_000  # of a line: five of the largest bodies
DEEPEST = 48  # levels: a request has at most 32, and a line adds at most 10
_NOTE = (
    "Contains signing keys and saved replies: anyone who has this file can sign as this sandbox"
    " does."
)
MISFITS = (LookupError, TypeError, ValueError, AttributeError, AssertionError, ArithmeticError)
"""What code raises that is given values which are not as it wrote them."""
_NO_SECRETS = "Contains no keys and no saved replies: an import creates new keys."


class BadFile(ValueError):
    """A file that cannot be used.

    `kind` is foreign, damaged, other_version, too_large or unfit; `reasons` say why.
    """

    def __init__(self, kind: str, *reasons: str) -> None:
        text = reasons[0]
        if len(reasons) > 1:
            text = f"{len(reasons)} reasons: {text}"
        super().__init__(text)
        self.kind = kind
        self.reasons = reasons

    @property
    def lines(self) -> list[str]:
        """The message, and under it each reason if it has more than one."""
        if len(self.reasons) == 1:
            return [str(self)]
        return [str(self), *self.reasons]


def is_readable(line: bytes) -> bool:
    """Whether a line is short enough, whatever it says."""
    return len(line) <= LONGEST_LINE and line.count(b",") <= MOST_VALUES


def pack(
    file: IO[bytes], lines: Iterable[bytes], contract: Body, *, secrets: bool, kind: str = FORMAT
) -> None:
    """Write the file of these lines; `contract` is the one that the data is of.

    Raises BadFile when it would be too large to be read, or finds no room.
    """
    size = 0
    header: Body = {
        "format": kind,
        "version": VERSION,
        "server": __version__,
        "secrets": secrets,
        "contract": contract,
        "note": _NOTE if secrets else _NO_SECRETS,
    }
    try:
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            for line in chain([orjson.dumps({"header": header})], lines):
                size += len(line) + 1
                if len(line) > LONGEST_LINE:
                    raise BadFile(
                        "too_large",
                        f"A record takes more than {LONGEST_LINE >> 20} MiB, the maximum of a"
                        " line.",
                    )
                if size > MOST_BYTES:
                    raise BadFile(
                        "too_large", f"The sandbox takes more than {_LIMIT}, the maximum of a file."
                    )
                packed.write(line + b"\n")
    except OSError as error:
        raise BadFile(
            "too_large", f"The server has no room for the file: {error.strerror}."
        ) from None


def unpack(
    data: bytes | bytearray,
    check: Callable[[str, Any], None] | None,
    expected: Collection[str] = (FORMAT, RECORDING),
) -> Iterator[tuple[str, Any]]:
    """The header and then the lines of a file as (kind, body).

    `check` validates a line against its schema, unless that was done before; `expected` are the
    formats that may be read. Raises BadFile.
    """
    if data[:2] != b"\x1f\x8b":
        raise BadFile("foreign", "This is not a sandbox file: it is not packed with gzip.")
    lines = _lines(data)
    header = _parsed(next(lines, b""))
    _check_header(*header, expected)
    for kind, body in chain([header], map(_parsed, lines)):
        if check is not None:
            check(kind, body)
        yield kind, body


def read_file(path: Path) -> bytes:
    """The bytes of a file.

    Raises BadFile for a device or pipe, and for a file that is too large.
    """
    if not path.is_file():
        raise BadFile("foreign", "It is not a regular file.")
    if path.stat().st_size > MOST_BYTES:
        raise BadFile(
            "too_large", f"It is larger than {MOST_BYTES >> 20} MiB, the most that is read."
        )
    return path.read_bytes()


def _check_header(kind: str, body: Any, expected: Collection[str]) -> None:
    header = body if kind == "header" and isinstance(body, dict) else {}
    format_ = header.get("format")
    version = header.get("version")
    if format_ == FORMAT and format_ not in expected:
        raise BadFile(
            "foreign",
            "This file contains a sandbox and no requests: `stub-server import` reads it.",
        )
    if format_ not in expected or not isinstance(version, int):
        raise BadFile("foreign", "This is not a sandbox file: its first line does not say so.")
    if version != VERSION:
        raise BadFile(
            "other_version",
            f"The file was made by version {str(body.get('server'))[:40]}, in format {version}, and"
            f" this one, {__version__}, reads format {VERSION}. Read it with that version.",
        )


def _parsed(line: bytes) -> tuple[str, Any]:
    """The kind and the body of a line; no kind where it is not a JSON object of one member.

    Raises BadFile.
    """
    try:
        value = orjson.loads(line)
    except ValueError:
        value = None
    if line.count(b",") > MOST_VALUES and has_more_values(value, MOST_VALUES):
        raise damaged(f"a line has more than {MOST_VALUES:,} values")
    if line.count(b"[") + line.count(b"{") > DEEPEST and is_deeper_than(value, DEEPEST):
        raise damaged(f"a line is nested deeper than {DEEPEST} levels")
    if not isinstance(value, dict) or len(value) != 1:
        return "", None
    ((kind, body),) = value.items()
    return kind, body


def _lines(data: bytes | bytearray) -> Iterator[bytes]:
    """The lines of what was packed, unpacked piece by piece: a small file may unpack to a very
    large one.
    """
    size = 0
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as packed:
            while line := packed.readline(LONGEST_LINE + 2):
                size += len(line)
                if size > MOST_BYTES:
                    raise BadFile(
                        "too_large",
                        f"The file unpacks to more than {_LIMIT}, the most that is read.",
                    )
                if len(line) > LONGEST_LINE + 1:
                    raise damaged(f"a line is longer than {LONGEST_LINE >> 20} MiB")
                yield line.rstrip(b"\n")
    except EOFError:
        raise damaged("it is truncated") from None
    except (OSError, zlib.error) as error:
        raise damaged(f"it cannot be unpacked ({error})") from None


def damaged(reason: str) -> BadFile:
    """A file that was changed after it was written."""
    return BadFile("damaged", f"The file is damaged: {reason}.")
