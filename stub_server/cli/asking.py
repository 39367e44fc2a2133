"""Verbs that send one request to the control surface of a sandbox, and print the answer."""

import sys
from collections.abc import Callable
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..core.members import given
from ..core.record import Body
from .options import table, write_private, yaml_text
from .running_server import Target


def work_of(about: Body) -> Callable[..., None]:
    """What a verb does that is one request: `about` has its `call`, `lists` or `writes`."""
    if "lists" in about:
        return partial(_list, about["lists"], about["columns"])
    if "writes" in about:
        return partial(_download, about["writes"])
    return partial(_ask, about)


def _ask(about: Body, target: Target, **values: Any) -> None:
    """Send a request, such as `POST /orders/{order}/pay`, and print its answer.

    POST and PATCH send the arguments that the path does not name in the body, other methods in the
    query. An argument that is an object has members of the body.
    """
    target.may_be_new |= about.get("may_be_new", False)
    method, path = about["call"].split()
    in_path, others = {"sandbox": quote(target.sandbox, safe="")}, Body()
    deleted = target.sandbox if "{sandbox}" in path else "all"
    for name, value in given(**values).items():
        if f"{{{name}}}" in path:
            in_path[name] = quote(str(value), safe="")
            deleted = str(value)
        elif isinstance(value, dict):
            others |= value
        else:
            others[name] = value
    sent_as = "json" if method in ("POST", "PATCH") else "params"
    answer = target.control(method, path.format(**in_path), **{sent_as: others})
    if method == "DELETE":
        answer = {"deleted": deleted}
    text = about["says"].format(**answer) if "says" in about else yaml_text(answer)
    target.show(answer, text)


def _list(
    member: str, columns: str, target: Target, limit: int = sys.maxsize, **query: Any
) -> None:
    """Print a list of the control surface, all of it without a limit."""
    show_list(target, member, target.every(member, limit, **query), columns)


def show_list(target: Target, member: str, entries: list[Any], columns: str) -> None:
    """Print a list as a table with the names of the columns above it; one with a dot is of a member
    of a member.
    """
    found = {member: entries}
    if not entries:
        target.show(found, f"There are no such {member}.")
        return
    rows = []
    for entry in entries:
        rows.append([reduce(getitem, column.split("."), entry) for column in columns.split()])
    target.show(found, table(columns.upper(), rows))


def _download(about: Body, target: Target, output: Path | None, **query: Any) -> None:
    """Write to a file what the control surface answers, called like the sandbox if there is no
    `output`; `about` has what is always asked.
    """
    asked = about.get("query", {}) | given(**query)
    data = target.file(about["path"], about["media"], **asked)
    file = output or Path(f"{target.sandbox}.{about['ending']}")
    write_private(file, data)
    if str(file) != "-":
        written = {"sandbox": target.sandbox, "file": str(file), "bytes": len(data)}
        target.show(
            written, f"{file} is written from the sandbox {target.sandbox}: {len(data):,} bytes."
        )
