"""What the help of each command names: its arguments and its flags, each with a word of what it is for."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from stub_server.cli.command import main
from stub_server.cli.offline_verbs import TOOLS

SERVER = "--server --admin-key --json"
SANDBOX = f"{SERVER} --sandbox --control-key"
FILTERS = "--operation --method --path --status --code --caller --since --until --contains --control --commands"
TAKES = {
    "": "COMMAND --version",
    "assumptions": SANDBOX,
    "certify": f"URL --signing-key --event --effects --effects-command {SANDBOX}",
    "backup": "DIR FILE --json",
    "check": "--overlay --json",
    "clock": "COMMAND",
    "clock advance": f"SPAN|ISO8601 {SANDBOX}",
    "clock set": f"ISO8601|frozen|running {SANDBOX}",
    "clock show": SANDBOX,
    "dispute": f"ID|CODE|last --amount --reason {SANDBOX}",
    "env": SANDBOX,
    "events": "COMMAND",
    "events list": f"--limit {SANDBOX}",
    "events raise": f"TYPE {SANDBOX}",
    "expire": f"ID|CODE|last {SANDBOX}",
    "explain": f"ID|last --commands {SANDBOX}",
    "export": f"--output --history --no-secrets {SANDBOX}",
    "fail": f"ID|CODE|last --code {SANDBOX}",
    "faults": "COMMAND",
    "faults add": f"RULE {SANDBOX}",
    "faults clear": SANDBOX,
    "faults delete": f"ID {SANDBOX}",
    "faults list": SANDBOX,
    "fork": f"[NAME] --step --deliver --ttl {SANDBOX}",
    "health": SANDBOX,
    "import": f"FILE --deliver {SANDBOX}",
    "init": "TOOL [FOLDER] --json",
    "listen": f"--forward-to --events --print {SANDBOX}",
    "orders": "COMMAND",
    "personas": "COMMAND",
    "personas add": f"PERSONA --plan {SANDBOX}",
    "orders list": f"--status --limit {SANDBOX}",
    "orders show": f"ID|CODE|last {SANDBOX}",
    "pay": f"ID|CODE|last {SANDBOX}",
    "proxy": "URL --port --overlay --report --write-overlay --fail",
    "mcp": "--server --sandbox --admin-key --control-key",
    "record": f"--output --no-secrets {SANDBOX}",
    "refund": f"ID|CODE|last --amount {SANDBOX}",
    "replay": "FILE --overlay --scenario --json",
    "requests": "COMMAND",
    "requests clear": SANDBOX,
    "requests har": f"--output {FILTERS} {SANDBOX}",
    "requests list": f"--limit {FILTERS} {SANDBOX}",
    "requests show": f"ID|last --commands {SANDBOX}",
    "requests verify": f"JSON|@FILE|- {SANDBOX}",
    "resolve": f"ID|CODE|last {{won|lost}} {SANDBOX}",
    "reset": f"--scenario --seed --now {SANDBOX}",
    "rewind": f"--to-step --to-request --to {SANDBOX}",
    "serve": "--host --port --base-url --seed --scenario --now --overlay --auth --unknown-fields --unknown-query"
    " --check-digits --autopay --webhook-schedule --history --journal --store --sync"
    " --restore --cors-origin --allow-host --allow-private-webhooks --webhook-cacert"
    " --max-connections --max-streams --forwarded-allow-ips --rate-limit"
    " --admin-key --jwt-secret --log --ready-file --stop-after-idle --stop-on-eof --reload",
    "snapshots": "COMMAND",
    "snapshots delete": f"NAME {SANDBOX}",
    "snapshots list": SANDBOX,
    "snapshots restore": f"NAME {SANDBOX}",
    "snapshots save": f"NAME --description {SANDBOX}",
    "token": f"--scope --expires-in {SANDBOX}",
    "verify": "[URL] --token --write --charges --only --skip --budget --settle --coverage --seed --overlay --header"
    " --cacert --proxy --report --baseline --har --record-har --write-overlay --yes",
    "wait": f"--timeout --control-key {SERVER}",
    "sandboxes": "COMMAND",
    "sandboxes create": f"[NAME] --scenario --seed --now --ttl --control-key {SERVER}",
    "sandboxes delete": f"NAME --control-key {SERVER}",
    "sandboxes invite": f"NAME --control-key {SERVER}",
    "sandboxes list": f"[GLOB] --control-key {SERVER}",
    "sandboxes rotate": f"NAME --keys --control-key {SERVER}",
}


def commands(command: click.Command, *path: str) -> Iterator[str]:
    """The names of a command and of those within it."""
    yield " ".join(path)
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from commands(each, *path, name)


def test_every_command_is_here() -> None:
    assert set(TAKES) == set(commands(main))


@pytest.mark.parametrize("command", TAKES)
@pytest.mark.matrix
def test_the_help_of_a_command_names_what_it_takes(command: str) -> None:
    said = CliRunner().invoke(main, [*command.split(), "--help"], terminal_width=100)
    assert 0 == said.exit_code
    usage, _, text = said.stdout.partition("\n")
    arguments = [word for word in TAKES[command].split() if not word.startswith("--")]
    assert all(word in usage for word in arguments), usage
    described = re.findall(r"^  (?:-\w, )?(--[a-z-]+)(?: [^ ].*?)?(?:\n?  +)(\S.*)", text, re.MULTILINE)
    assert {*TAKES[command].split(), "--help"} - {*arguments} == {flag for flag, _ in described}


def test_no_name_of_a_tool_is_broken_over_lines() -> None:
    said = CliRunner().invoke(main, ["init", "--help"], terminal_width=80)
    assert [] == [tool for tool in TOOLS if tool not in said.stdout]


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
