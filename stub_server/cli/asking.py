"""Verbs that send one request to the control surface of a sandbox, and print the answer."""

import sys
from collections.abc import Callable, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from .options import SETTINGS, given, output_option, table, with_options, yaml_text
from .running_server import Target, asks_sandbox

Option = Callable[[Any], Any]
Said = str | Callable[[Target, Any], str]
"""How an answer is printed: a format string that names its members, or a function that
returns the text.
"""


def asking(
    name: str,
    call: str,
    help: str,
    *options: Option,
    said: Said | None = None,
    asks: Option = asks_sandbox,
    may_be_new: bool = False,
) -> click.Command:
    """A verb that sends one request, such as `POST /orders/{order}/pay`, and prints what `said`
    makes of the answer.

    An argument that the path names replaces its placeholder. A POST sends the others in the body,
    other methods in the query. Without `said` the answer is printed as YAML.
    """
    method, path = call.split()

    def ask(target: Target, **values: Any) -> None:
        target.may_be_new = may_be_new
        everything = {"sandbox": target.sandbox, **values}
        in_path = {
            name: quote(str(value), safe="")
            for name, value in everything.items()
            if f"{{{name}}}" in path
        }
        others = given(**{name: value for name, value in values.items() if name not in in_path})
        content = {"json": others} if method == "POST" else {"params": others}
        answer = target.control(method, path.format(**in_path), **content)
        if method == "DELETE":
            answer = {"deleted": next((str(everything[name]) for name in in_path), "all")}
        if said is None:
            text = yaml_text(answer)
        else:
            text = said.format(**answer) if isinstance(said, str) else said(target, answer)
        target.show(answer, text)

    return _verb(name, help, [*options, asks], ask)


def listing(
    name: str, member: str, columns: str, help: str, *options: Option, asks: Option = asks_sandbox
) -> click.Command:
    """A verb that lists a member of the control surface, such as `snapshots`; `columns` are members
    of its entries.

    With the option `--limit` it lists so many of them, else all.
    """

    def show_all(target: Target, limit: int = sys.maxsize, **query: Any) -> None:
        show_list(target, target.every(member, limit, **query), columns)

    return _verb(name, help, [*options, asks], show_all)


def show_list(target: Target, found: dict[str, list[Any]], columns: str) -> None:
    """Print a list as a table with the names of the columns above it."""
    ((member, entries),) = found.items()
    rows = [[_at(column, entry) for column in columns.split()] for entry in entries]
    target.show(found, table(columns.upper(), rows) if rows else f"There are no such {member}.")


def _at(column: str, entry: Any) -> Any:
    """The member of an entry, or with a dot that of a member."""
    return reduce(getitem, column.split("."), entry)


def downloading(
    name: str, path: str, media: str, ending: str, help: str, *options: Option, **fixed: bool
) -> click.Command:
    """A verb that writes what the control surface answers to a file; `fixed` is always in
    the query.
    """

    def download(target: Target, output: Path | None, **query: Any) -> None:
        chosen = {name: value for name, value in query.items() if value is not None}
        target.download(path, fixed | chosen, media, output, ending)

    return _verb(name, help, [output_option(ending), *options, asks_sandbox], download)


def group(name: str, help: str, *verbs: click.Command) -> click.Group:
    """A noun with its verbs."""
    text = f"{help}\n\nExit code 1 if the sandbox refuses, 2 if no sandbox answers."
    return click.Group(
        name, {each.name or "": each for each in verbs}, help=text, context_settings=SETTINGS
    )


def _verb(
    name: str, help: str, options: Sequence[Option], work: Callable[..., None]
) -> click.Command:
    return click.command(name, help=help, context_settings=SETTINGS)(with_options(*options)(work))
