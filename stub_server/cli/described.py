"""The verbs as `fixtures/command.yaml` describes them, made into click's commands."""

import os
from functools import partial
from importlib import import_module
from typing import Any

import click

from ..contract.source import fixture
from . import kinds
from .options import EXISTING, EXISTING_OR_STDIN, Number, UserPath, url, url_with_query

About = dict[str, Any]
_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}
_TYPES = {
    "address": url,
    "address with query": url_with_query,
    "authorities": kinds.authorities,
    "boolean": bool,
    "clock": kinds.clock,
    "existing file": EXISTING,
    "existing file or -": EXISTING_OR_STDIN,
    "fault rule": kinds.fault_rule,
    "file": UserPath(dir_okay=False),
    "file or -": UserPath(dir_okay=False, writable=True, allow_dash=True),
    "folder": UserPath(file_okay=False),
    "host": kinds.host,
    "instant": kinds.instant,
    "integer": int,
    "number": float,
    "path": os.path.expanduser,
    "proxies": kinds.proxies,
    "rate": kinds.rate,
    "secret": kinds.secret,
    "span": kinds.span,
    "store": kinds.store,
}
_RANGES = {"integer": Number, "number": click.FloatRange}
_ASKED = {
    "sandbox": ("--server", "--sandbox", "--admin-key", "--control-key", "--json"),
    "server": ("--server", "--admin-key", "--control-key", "--json"),
}
_EXIT_CODES = "Exit code 1 if the sandbox refuses, 2 if no sandbox answers."


def verb(name: str, about: About) -> click.Command:
    """A verb, or a noun with its verbs."""
    settings = _SETTINGS | about.get("settings", {})
    if "verbs" in about:
        below = [verb(each, it) for each, it in about["verbs"].items()]
        return click.Group(
            name, below, help=f"{about['help']}\n\n{_EXIT_CODES}", context_settings=settings
        )
    return click.Command(
        name,
        params=_parameters(about),
        callback=partial(_run, about),
        help=about["help"],
        context_settings=settings,
    )


def _run(about: About, **values: Any) -> Any:
    """Run a verb. What it needs is imported now: other verbs do not wait for it."""
    if "does" in about:
        module, name = about["does"].split(".")
        work = getattr(import_module(f".{module}", __package__), name)
    else:
        from .asking import work_of

        work = work_of(about)
    if "asks" in about:
        from .running_server import asking

        work = asking(work)
    return work(**values)


def _parameters(about: About) -> list[click.Parameter]:
    """The arguments and options of a verb."""
    found: list[click.Parameter] = []
    for name, each in about.get("arguments", {}).items():
        given = {"metavar": each} if isinstance(each, str) else dict(each or {})
        found.append(click.Argument([name], type=_type_of(given), **given))
    options = about.get("options", {})
    for flags in (*options, *_ASKED.get(about.get("asks", ""), ())):
        found.append(_option(flags, options.get(flags) or fixture("command.yaml")["shared"][flags]))
    return found


def _option(flags: str, about: About) -> click.Option:
    given = dict(about)
    names = flags.split(", ")
    if "name" in given:
        names.append(given.pop("name"))
    if "one_of" in given:
        given["default"] = given["one_of"][0]
    return click.Option(names, type=_type_of(given), **given)


def _type_of(given: About) -> Any:
    """The type of a value, which is taken out of its settings."""
    if "one_of" in given:
        return click.Choice(given.pop("one_of"))
    kind, low, high = (given.pop(name, None) for name in ("type", "from", "to"))
    if low is not None:
        return _RANGES[kind](low, high)
    return _TYPES.get(kind)
