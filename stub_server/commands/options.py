"""What verbs of the command share: how they fail, print, and are told which server and sandbox are meant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from .server import RunningServer

LOCAL = "http://127.0.0.1:4600"
_NAMES = ("stub-server", "stub")
F = TypeVar("F", bound=Callable[..., Any])


class Refusing(click.ClickException):
    """What was asked for is refused: exit code 1. The message may quote a stranger."""

    def format_message(self) -> str:
        """The message as it is printed."""
        return printable_lines(self.message)


class Unusable(Refusing):
    """Input that nothing can be done with: one line, exit code 2."""

    exit_code = 2


class SandboxName(click.ParamType[str]):
    """The name of a sandbox, by any spelling."""

    name = "TEXT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Fail for what no sandbox can be called."""
        from ..worlds.names import NAMING, folded, is_name

        name = folded(str(value))
        if is_name(name) is None:
            self.fail(f"a name has {NAMING}.", param, ctx)
        return name


class Number(click.IntRange):
    """A whole number within bounds."""

    name = "integer"  # click's own says "integer range" of what is no number


class BaseUrl(click.ParamType[str]):
    """An absolute http address."""

    name = "URL"

    def __init__(self, *, with_query: bool = False) -> None:
        self._with_query = with_query

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Fail for what no client could call."""
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(str(value))
            good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:
            good = False
        if not good or parts.fragment or (parts.query and not self._with_query):
            self.fail(f"{value!r} is not an address such as https://sandbox.example.com.", param, ctx)
        return str(value)


def answer_of(
    server: str,
    sandbox: str,
    admin_key: str | None,
    ask: Callable[[RunningServer], Awaitable[Any]],
    *,
    may_be_new: bool = False,
) -> Any:
    """What a running server answers of a sandbox. Unless that `may_be_new` it is there: a slip must not make another.

    A refusal ends the command with 1, a server that is away with 2.
    """
    import asyncio

    from .server import Away, Refused, RunningServer

    async def asked() -> Any:
        async with RunningServer(server, sandbox, admin_key) as running:
            if not may_be_new:
                await running.check_sandbox()
            return await ask(running)

    try:
        return asyncio.run(asked())
    except Refused as error:
        reasons = error.reasons if len(error.reasons) > 1 else ()
        raise Refusing("\n  ".join([str(error), *reasons])) from None
    except Away as error:
        raise Unusable(str(error)) from None


def printable(text: str) -> str:
    """Text of a stranger for a terminal: what would move the cursor is escaped."""
    return "".join([sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text])


def printable_lines(text: str) -> str:
    """The same of a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON for a terminal: what would move the cursor is escaped as JSON escapes it."""
    import json

    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return "".join([sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text])


def tell(answer: Any, text: str, *, as_json: bool) -> None:
    """Print what a verb has to say, as JSON or for people. Both may quote a stranger."""
    click.echo(json_text(answer) if as_json else printable_lines(text))


def ask_and_tell(
    server: str,
    sandbox: str,
    admin_key: str | None,
    call: Callable[[RunningServer], Awaitable[Any]],
    told: Callable[[Any], str],
    as_json: bool,
) -> None:
    """Ask a running server and print what it says."""
    answer = answer_of(server, sandbox, admin_key, call)
    tell(answer, told(answer), as_json=as_json)


def write_private(file: Path, data: bytes) -> None:
    """Write a file that its owner alone may read: it may hold keys. Raises Unusable."""
    import os
    import stat

    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            if stat.S_ISREG(os.fstat(out.fileno()).st_mode):  # one that was there before; no device, such as /dev/null
                os.chmod(file, 0o600)
            out.write(data)
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror or error}.") from None


def command() -> str:
    """How a shell calls this command: by its name where the name means it, else as it was called itself."""
    import shlex
    import shutil
    import sys

    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m {called.parent.name}"
    if called.name not in _NAMES or not called.exists():  # another program runs the server
        return _NAMES[0]
    found = shutil.which(called.name)
    return called.name if found is not None and called.samefile(found) else shlex.quote(str(called))


def aimed(server: str, sandbox: str) -> str:
    """The options with which another command means the same sandbox, to be added to it."""
    from ..engine.sandbox import DEFAULT

    told = "" if server == LOCAL else f" --server {server}"
    return told + ("" if sandbox == DEFAULT else f" --sandbox {sandbox}")


class ControlKey(str):
    """The control key of a sandbox, which a verb is given where it takes the admin key."""


def _with_a_key(command: F) -> F:
    """The options `--admin-key` and `--control-key`: whichever is given, the verb gets it as its `admin_key`."""

    @wraps(command)
    def called(*, control_key: str | None, **options: Any) -> Any:
        if control_key is not None:
            options["admin_key"] = ControlKey(control_key)
        return command(**options)

    of_sandbox = click.option("--control-key", metavar="KEY", help="The sandbox's own key, instead of the admin key.")
    return _ADMIN_KEY(of_sandbox(cast(F, called)))


_SERVER = click.option("--server", type=BaseUrl(), default=LOCAL, help="The running server.")
_SANDBOX = click.option("--sandbox", default="default", help="The sandbox to use.")
_ADMIN_KEY = click.option("--admin-key", metavar="KEY", help="The server's admin key, if it has one.")


def of_a_server(command: F) -> F:
    """The options `--server`, `--sandbox`, `--admin-key` and `--control-key`."""
    return _SERVER(_SANDBOX(_with_a_key(command)))


def of_a_server_by_admin(command: F) -> F:
    """The options `--server`, `--sandbox` and `--admin-key`: for calls that a control key does not open."""
    return _SERVER(_SANDBOX(_ADMIN_KEY(command)))


def of_a_whole_server(command: F) -> F:
    """The options `--server` and `--admin-key`."""
    return _SERVER(_ADMIN_KEY(command))


def overlay_option(told: str) -> Callable[[F], F]:
    """The option that takes overlays; `told` is its help."""
    return click.option(
        "--overlay",
        "overlays",
        type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
        multiple=True,
        envvar="STUB_OVERLAY",
        help=told,
    )


of_overlays = overlay_option("OpenAPI Overlay to apply; repeatable.")
