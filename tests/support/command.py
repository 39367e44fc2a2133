"""The command `stub-server`, run in this process."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from stub_server.cli import main

from .make import Json

HELP = Path(__file__).parents[1] / "surfaces" / "help"


def run(*args: str) -> Result:
    """What the command says and how it exits."""
    return CliRunner().invoke(main, args)


def done(*args: str) -> str:
    """What it says, of a command that does what it was asked to."""
    said = run(*args)
    assert 0 == said.exit_code, said.output
    return said.stdout


def asked(*args: str) -> Json:
    """The same as JSON."""
    found: Json = json.loads(done(*args, "--json"))
    return found


def check_help(verb: str) -> None:
    """Check the help of a verb against its file: who changes it changes the file too, and sees what users will."""
    said = CliRunner().invoke(main, [verb, "--help"], terminal_width=100)
    assert (HELP / f"{verb}.txt").read_text() == said.output
