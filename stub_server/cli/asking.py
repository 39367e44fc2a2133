"""Verbs that send one request to the control surface of a sandbox, and print the answer."""

import sys
from collections.abc import Callable, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from ..core.members import given
from .options import SETTINGS, output_option, table, with_options, yaml_text
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
        in_path = {"sandbox": quote(target.sandbox, safe="")}
        others = {}
        deleted = target.sandbox if "{sandbox}" in path else "all"
        for name, value in given(**values).items():
            if f"{{{name}}}" in path:
                in_path[name] = quote(str(value), safe="")
                deleted = str(value)
            else:
                others[name] = value
        sent_as = "json" if method == "POST" else "params"
        answer = target.control(method, path.format(**in_path), **{sent_as: others})
        if method == "DELETE":
            answer = {"deleted": deleted}
        if said is None:
            text = yaml_text(answer)
        elif isinstance(said, str):
            text = said.format(**answer)
        else:
            text = said(target, answer)
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
    if not entries:
        target.show(found, f"There are no such {member}.")
        return
    rows = []
    for entry in entries:
        rows.append([_at(column, entry) for column in columns.split()])
    target.show(found, table(columns.upper(), rows))


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
        target.download(path, fixed | given(**query), media, output, ending)

    return _verb(name, help, [output_option(ending), *options, asks_sandbox], download)


def group(name: str, help: str, *verbs: click.Command) -> click.Group:
    """A noun with its verbs."""
    text = f"{help}\n\nExit code 1 if the sandbox refuses, 2 if no sandbox answers."
    return click.Group(name, verbs, help=text, context_settings=SETTINGS)


def _verb(
    name: str, help: str, options: Sequence[Option], work: Callable[..., None]
) -> click.Command:
    return click.command(name, help=help, context_settings=SETTINGS)(with_options(*options)(work))
