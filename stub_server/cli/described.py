"""The verbs as `fixtures/command.yaml` describes them, made into click's commands."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from inspect import cleandoc
from typing import Any

import click

from ..contract.source import read
from ..core.shipped import data_dir
from . import kinds
from .asking import work_of
from .options import EXISTING, EXISTING_OR_STDIN, Number, UserPath, url, url_with_query
from .running_server import asking

Work = Callable[..., Any]
About = dict[str, Any]
_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}
_TYPES = {
    "address": url,
    "address with query": url_with_query,
    "authorities": kinds.authorities,
    "boolean": bool,
    "existing file": EXISTING,
    "existing file or -": EXISTING_OR_STDIN,
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
    "span": kinds.span,
    "store": kinds.store,
}
_RANGES = {"integer": Number, "number": click.FloatRange}
_ASKED = {
    "sandbox": ("--server", "--sandbox", "--admin-key", "--control-key", "--json"),
    "server": ("--server", "--admin-key", "--control-key", "--json"),
}
_EXIT_CODES = "Exit code 1 if the sandbox refuses, 2 if no sandbox answers."


def verbs(works: Mapping[str, Work]) -> Iterator[click.Command]:
    """All verbs. `works` has the functions of those that are more than one request, by name."""
    for name, about in _described()["verbs"].items():
        yield _verb(name, about, works)


@cache
def _described() -> About:
    found: About = read(data_dir("fixtures") / "command.yaml")
    return found


def _verb(path: str, about: About, works: Mapping[str, Work]) -> click.Command:
    """A verb, or a noun with its verbs; `path` has the noun before the verb."""
    name = path.rpartition(" ")[2]
    if "verbs" in about:
        below = [_verb(f"{path} {each}", it, works) for each, it in about["verbs"].items()]
        text = f"{about['help']}\n\n{_EXIT_CODES}"
        return click.Group(name, below, help=text, context_settings=_SETTINGS)
    work = works.get(path) or work_of(about)
    text = about.get("help") or cleandoc(work.__doc__ or "")
    if "asks" in about:
        work = asking(work)
    settings = _SETTINGS | about.get("settings", {})
    return click.Command(
        name, params=_parameters(about), callback=work, help=text, context_settings=settings
    )


def _parameters(about: About) -> list[click.Parameter]:
    """The arguments and options of a verb."""
    found: list[click.Parameter] = []
    for name, each in about.get("arguments", {}).items():
        given = {"metavar": each} if isinstance(each, str) else dict(each or {})
        found.append(click.Argument([name], type=_type_of(given), **given))
    options = about.get("options", {})
    for flags in (*options, *_ASKED.get(about.get("asks", ""), ())):
        found.append(_option(flags, options.get(flags) or _described()["shared"][flags]))
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
