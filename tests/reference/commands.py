"""The commands with their options, and the settings of the server, as `stub-server --help` has them."""

from collections.abc import Iterator

import click

from stub_server.cli.command import main, serve

from .contract import CONTROL
from .writing import code, codes, line, page, table

_COMMON = ("--server", "--sandbox", "--admin-key", "--control-key", "--json")
_READ_MORE = {
    "--scenario": "../time.md#choose-the-data",
    "--overlay": "../overlays.md",
    "--autopay": "../payments.md#choose-by-e-mail-address",
    "--webhook-schedule": "../webhooks.md#retries-duplicates-and-order",
    "--history": "../time.md#go-back",
    "--journal": "../journal.md",
    "--store": "../stores.md",
    "--sync": "../stores.md#durability",
    "--restore": "../files.md",
    "--cors-origin": "../api.md#call-it-from-a-browser-cors",
    "--rate-limit": "../api.md#meet-a-rate-limit",
    "--admin-key": "../teams.md#one-server-for-a-team",
    "--log": "../ci.md#the-log",
    "--ready-file": "../ci.md#wait-and-stop",
    "--stop-after-idle": "../ci.md#wait-and-stop",
    "--stop-on-eof": "../ci.md#wait-and-stop",
}
"""The page about a setting."""


def verbs() -> str:
    """The page of the commands."""
    shared = [option for option in _options(main.commands["pay"]) if option.opts[0] in _COMMON]
    return page(
        "Commands",
        """Every command of `stub-server`, as its `--help` prints it. Without a command,
        `serve` runs. [Exit codes](../ci.md#exit-codes) are the same for all commands.""",
        "## Options of commands that ask a server",
        _table(shared, main.commands["pay"]),
        *(text for name, each in main.commands.items() if not each.hidden for text in _verb(each, name)),
    )


def _verb(command: click.Command, *path: str) -> Iterator[str]:
    name = " ".join(("stub-server", *path))
    context = click.Context(command, info_name=name)
    options = _options(command)
    has_common = {*_COMMON} <= {option.opts[0] for option in options}
    own = [option for option in options if not (has_common and option.opts[0] in _COMMON)]
    yield f"## {name}"
    yield code(" ".join((name, *command.collect_usage_pieces(context))))
    yield "\n\n".join(map(line, (command.help or "").replace("\b\n", "").split("\n\n")))
    if command is serve:
        yield "Its options are the [settings](settings.md)."
    else:
        yield _table(own, command)
        if has_common:
            yield "It also takes the [options of commands that ask a server](#options-of-commands-that-ask-a-server)."
    for part, each in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _verb(each, *path, part)


def _options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def _table(options: list[click.Option], command: click.Command) -> str:
    rows = ((codes(option.opts), code(_value(option)), _default(option), option.help or "") for option in options)
    return table(("Option", "Value", "Default", "What"), rows)


def _value(option: click.Option) -> str:
    """What is given to an option; empty for one without a value."""
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.metavar or option.type.name


def _default(option: click.Option) -> str:
    if isinstance(option.show_default, str):
        return code(option.show_default)
    default = option.to_info_dict()["default"]
    return "" if option.is_flag or default in (None, [], ()) or option.multiple else code(str(default))


def settings() -> str:
    """The page of the settings."""
    return page(
        "Settings",
        """Pass flags to `stub-server serve`, or in a checkout to make: `make run ARGS='--seed 7'`. Every flag has an
        environment variable. A flag without a value is set by `1`: `STUB_SALVAGE=1`. Repeatable ones take several
        values with spaces between them or, for files, colons.""",
        "The other commands read `STUB_SERVER`, `STUB_SANDBOX`, `STUB_ADMIN_KEY` and `STUB_CONTROL_KEY`.",
        *(_setting(option) for option in _options(serve)),
        "## Settings of one sandbox",
        "Set them when you [create or reset a sandbox](../time.md), or by `PATCH /_sandbox/settings`. A sandbox begins "
        "with those of the server.",
        table(
            ("Member", "Type", "What"),
            (
                (
                    code(name),
                    codes(member.get("enum", ())) or member["type"],
                    line(member["description"]),
                )
                for name, member in CONTROL.schema("SandboxSettings")["properties"].items()
            ),
        ),
    )


def _setting(option: click.Option) -> str:
    flag = option.opts[0]
    variable = option.envvar or f"STUB_{flag[2:].upper().replace('-', '_')}"
    value = _value(option)
    facts = [f"Variable: {code(str(variable))}."]
    facts += [f"Value: {code(value)}."] if value else []
    facts += [f"Default: {_default(option)}."] if _default(option) else []
    facts += [f"[Read more]({_READ_MORE[flag]})."] if flag in _READ_MORE else []
    return f"## {flag}\n\n{option.help}\n\n{' '.join(facts)}"
