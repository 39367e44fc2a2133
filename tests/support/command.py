"""The command `stub-server`, run in this process."""

import json

from click.testing import CliRunner, Result

from stub_server.cli.command import main

from .make import Json, typed
from .remembered import remembering


def run(*args: str, given: str | bytes | None = None) -> Result:
    """What the command says and how it exits; `given` is its standard input."""
    with remembering():
        return CliRunner().invoke(main, args, input=given)


def done(*args: str) -> str:
    """What it says, of a command that does what it was asked to."""
    said = run(*args)
    assert 0 == said.exit_code, said.output
    return said.stdout


def asked(*args: str) -> Json:
    """The same as JSON."""
    return typed(dict, json.loads(done(*args, "--json")))
