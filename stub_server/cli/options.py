"""What verbs share: types of options, errors with exit codes, printing, and files."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..core.record import Body
from ..core.text import json_text, printable, printable_lines

LOCAL = "http://127.0.0.1:4600"
_NAME = "stub-server"


class Refusing(click.ClickException):
    """The request is refused: exit code 1."""

    def format_message(self) -> str:
        """The message, escaped: it may quote other people's text."""
        return printable_lines(self.message)


class Unusable(Refusing):
    """The input cannot be used, or no server answers: exit code 2."""

    exit_code = 2


# -- types of options


class Number(click.IntRange):
    name = "integer"  # click's own name is "integer range"


def url_with_query(text: str) -> str:
    """An absolute http address that a client can call."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        good = (
            parts.scheme in ("http", "https")
            and parts.hostname
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        good = False
    if not good or parts.fragment:
        raise click.BadParameter(
            f"{text!r} is not an address, such as https://sandbox.example.com."
        )
    return text


def url(text: str) -> str:
    """The same without a query, as paths are added to it."""
    if "?" in text:
        raise click.BadParameter(
            f"{text!r} has a query: give an address such as https://sandbox.example.com."
        )
    return url_with_query(text)


class UserPath(click.Path):
    """A path as users write it: `~` is their home, quoted or not."""

    def __init__(self, **what: Any) -> None:
        super().__init__(path_type=Path, **what)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Expand `~`. An empty path would be the current directory."""
        if not value:
            self.fail("the path is empty.", param, ctx)
        return super().convert(os.path.expanduser(value), param, ctx)


EXISTING = UserPath(exists=True, dir_okay=False, readable=True)
EXISTING_OR_STDIN = UserPath(exists=True, dir_okay=False, readable=True, allow_dash=True)


# -- printing


def table(head: str, rows: Iterable[Sequence[Any]]) -> str:
    """Rows in columns under the words of `head`. None is shown as `-`."""
    lines = [head.split()]
    for row in rows:
        lines.append([_cell(value) for value in row])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ""
    for line in lines:
        text += "  ".join(map(str.ljust, line, widths)).rstrip() + "\n"
    return text.removesuffix("\n")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):  # an amount
        return f"{value:.2f}"
    return printable(str(value))


def yaml_text(value: Any) -> str:
    """A value for people who read all of it."""
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120).rstrip()


def show(answer: Any, text: str, *, as_json: bool) -> None:
    """Print an answer as JSON, or its text for people."""
    click.echo(json_text(answer) if as_json else printable_lines(text))


# -- files


def read_file(file: Path) -> bytes:
    """The bytes of a file, `-` for standard input. Raises Unusable."""
    import sys

    try:
        if str(file) == "-":
            return sys.stdin.buffer.read()
        return file.read_bytes()
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror or error}.") from None


def json_argument(text: str, what: str) -> Body:
    """The JSON object that an argument is, or names: @FILE, or - for standard input.

    Raises UsageError, Unusable.
    """
    import orjson

    content: str | bytes = text
    if text == "-" or text.startswith("@"):
        content = read_file(Path(os.path.expanduser(text.removeprefix("@"))))
    value = None
    with suppress(ValueError):
        value = orjson.loads(content)
    if not isinstance(value, dict):
        raise click.UsageError(
            f"{what}. Give JSON, @FILE for JSON in a file, or - for standard input."
        )
    return value


def write_private(file: Path, data: bytes) -> None:
    """Write a file that only its owner can read, since it may have keys; `-` is standard output.

    Raises Unusable.
    """
    import sys

    if str(file) == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            if file.is_file():  # which may have been there, and not a device such as /dev/null
                file.chmod(0o600)
            out.write(data)
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror or error}.") from None


# -- how the command is called


def command() -> str:
    """How a shell calls this command: by its name if the shell finds it, else as a module."""
    import shlex
    import shutil
    import sys

    if shutil.which(_NAME):
        return _NAME
    return f"{shlex.quote(sys.executable)} -m stub_server"


def key_headers(admin_key: str | None, control_key: str | None) -> dict[str, str]:
    """The header with the key of the control surface: a sandbox's own comes before the server's."""
    if control_key is not None:
        return {"X-Sandbox-Control-Key": control_key}
    if admin_key is not None:
        return {"X-Sandbox-Admin-Key": admin_key}
    return {}
