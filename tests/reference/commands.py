"""The commands with their options, and the settings of the server, as `stub-server
--help` has them.
"""

from collections.abc import Iterator

import click

from stub_server.cli.command import main

from .contract import CONTROL
from .writing import code, codes, line, page, table

_COMMON = ("--server", "--sandbox", "--admin-key", "--control-key", "--json")
_SECOND = "token"
"""The command that the second page begins with."""
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
    "--admin-key": "../teams.md#start",
    "--log": "../ci.md#the-log",
    "--ready-file": "../ci.md#wait-and-stop",
    "--stop-after-idle": "../ci.md#wait-and-stop",
    "--stop-on-eof": "../ci.md#wait-and-stop",
}
"""The page about a setting."""


def verbs() -> str:
    """The page of the commands that start a sandbox and act in it."""
    acting, others = _two_pages()
    shared = [option for option in _options(main.commands["pay"]) if option.opts[0] in _COMMON]
    alone = [name for name, each in main.commands.items() if not each.hidden and _alone(each)]
    return page(
        "Commands",
        f"""The commands that start and keep sandboxes, and act in them, as their `--help` prints them. [More
        commands](commands-more.md) are {codes(others)}. Without a command, `serve` runs. [Exit
        codes](../ci.md#exit-codes) are the same for all commands.

        `eval "$(_STUB_SERVER_COMPLETE=bash_source stub-server)"` makes bash complete them, with `zsh_source` or
        `fish_source` those shells.""",
        "## Options of commands that ask a server",
        f"All but {codes(alone)} take them.",
        _list(shared),
        *(text for name, each in acting.items() for text in _verb(each, name)),
    )


def more_verbs() -> str:
    """The page of the other commands."""
    return page(
        "More commands",
        """Tokens, requests, webhooks, and the comparison with a backend. [Commands](commands.md) has the others, and
        the [options of most](commands.md#options-of-commands-that-ask-a-server).""",
        *(text for name, each in _two_pages()[1].items() for text in _verb(each, name)),
    )


def _two_pages() -> list[dict[str, click.Command]]:
    shown = {name: each for name, each in main.commands.items() if not each.hidden}
    half = [*shown].index(_SECOND)
    return [dict([*shown.items()][:half]), dict([*shown.items()][half:])]


def _alone(command: click.Command) -> bool:
    """Whether a command asks no sandbox."""
    parts = command.commands.values() if isinstance(command, click.Group) else [command]
    return not any({*_COMMON} <= {option.opts[0] for option in _options(each)} for each in parts)


def _verb(command: click.Command, *path: str) -> Iterator[str]:
    name = " ".join(("stub-server", *path))
    context = click.Context(command, info_name=name)
    own = [
        option for option in _options(command) if _alone(command) or option.opts[0] not in _COMMON
    ]
    yield f"## {name}"
    if command is main.commands["serve"]:
        yield f"{line(command.help or '')} Its options are the [settings](settings.md)."
        return
    takes = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    if takes and not isinstance(command, click.Group):
        yield code(" ".join((name, "[OPTIONS]", *takes)))
    yield "\n\n".join(map(line, (command.help or "").replace("\b\n", "").split("\n\n")))
    yield _list(own)
    for part, each in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _verb(each, *path, part)


def _options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def _list(options: list[click.Option]) -> str:
    lines = []
    for option in options:
        default = f" Default: {_default(option)}." if _default(option) else ""
        names = ", ".join(code(f"{name} {_value(option)}".strip()) for name in option.opts)
        lines.append(f"- {names}: {option.help or ''}{default}")
    return "\n".join(lines)


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
    return (
        "" if option.is_flag or default in (None, [], ()) or option.multiple else code(str(default))
    )


def settings() -> str:
    """The page of the settings."""
    return page(
        "Settings",
        """Pass flags to `stub-server serve`, or in a checkout to make: `make run ARGS='--seed 7'`. Every flag has an
        environment variable. A flag without a value is set by `1`: `STUB_STOP_ON_EOF=1`. Repeatable ones take several
        values with spaces between them or, for files, colons.""",
        "The other commands read `STUB_SERVER`, `STUB_SANDBOX`, `STUB_ADMIN_KEY` and"
        " `STUB_CONTROL_KEY`.",
        *(_setting(option) for option in _options(main.commands["serve"])),
        "## Settings of one sandbox",
        "Set them when you [create or reset a sandbox](../time.md), or by `PATCH"
        " /_sandbox/settings`. A sandbox begins with those of the server.",
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
