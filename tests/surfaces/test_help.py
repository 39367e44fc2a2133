"""The help of the commands.

What each takes stands in docs/reference/commands.md, which is made of it.
"""

import re
from collections.abc import Iterator
from importlib import import_module

import click
from click.testing import CliRunner

from stub_server.cli.command import main
from stub_server.contract.source import fixture
from stub_server.core.shipped import data_dir

COMMAND = data_dir("fixtures") / "command.yaml"


def commands(command: click.Command, *path: str) -> Iterator[str]:
    """The names of a command and of those within it."""
    yield " ".join(path)
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from commands(each, *path, name)


def test_no_name_of_a_tool_is_broken_over_lines() -> None:
    said = CliRunner().invoke(main, ["init", "--help"], terminal_width=80)
    assert [] == [tool for tool in fixture("init-tools.yaml") if tool not in said.stdout]


def test_what_a_verb_does_is_a_function() -> None:
    found = re.findall(r"^ +does: (\w+)\.(\w+)$", COMMAND.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) > 10
    for module, name in found:
        assert callable(getattr(import_module(f"stub_server.cli.{module}"), name)), name


def test_every_verb_that_asks_a_server_reads_which_one_from_the_environment() -> None:
    """STUB_SERVER and its like are read by the verbs of a noun too, not STUB_FAULTS_ADD_SERVER."""
    for path in filter(None, commands(main)):
        command: click.Command = main
        context = click.Context(main, info_name="stub-server")
        for name in path.split():
            assert isinstance(command, click.Group)
            command = command.commands[name]
            context = click.Context(command, context, info_name=name, **command.context_settings)
        if any("--server" in option.opts for option in command.params):
            assert "STUB" == context.auto_envvar_prefix, path
