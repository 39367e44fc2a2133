"""The verbs that need no server: `backup`, `check`, `init`, `mcp` and `replay`.

Exit codes: 0 fine, 1 faults or another answer, 2 usage or a file that cannot be used.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import click

from ..core.record import Body
from ..core.text import printable
from ..tools.mcp import missing
from .options import Unusable, key_headers, read_file, show, yaml_text


def init(tool: str, folder: Path, as_json: bool) -> None:
    """Write first tests, settings or a workflow for TOOL to FOLDER."""
    try:
        written = _write_new(_files_of(tool, folder), folder)
    except OSError as error:
        raise Unusable(f"{error.filename}: {error.strerror}.") from None
    show(
        {"written": written}, "\n".join(written) or "Every file is there already.", as_json=as_json
    )


def _files_of(tool: str, folder: Path) -> dict[Path, bytes]:
    """What is written for a tool: the content of each file in the folder."""
    from ..contract.source import fixture
    from ..core.shipped import FIXTURES

    files = {}
    for name in fixture("init-tools.yaml")[tool]:
        source = FIXTURES / "init" / name
        for file in sorted(source.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                files[folder / file.relative_to(source)] = file.read_bytes()
    return files


def _write_new(files: Mapping[Path, bytes], folder: Path) -> list[str]:
    """Write the files that do not exist in a folder, and return their names.

    Raises Unusable, before anything is written, where another file has one of the names.
    """
    new, other = [], []
    for target, content in files.items():
        between = target.parent.relative_to(folder)
        # a folder between may lead elsewhere
        if target.parent.resolve() != folder.resolve() / between:
            other.append(str(target.parent))
        elif not os.path.lexists(target):
            new.append(target)
        elif target.is_symlink() or target.read_bytes() != content:
            other.append(str(target))
    if other:
        raise Unusable(
            f"{', '.join(other)} exists already. Remove it, or name another folder and copy"
            " from there."
        )
    for target in new:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:  # follows no link that somebody puts there meanwhile
            file.write(files[target])
    return [str(target) for target in new]


def backup(folder: Path, file: Path, as_json: bool) -> None:
    """Copy the store in DIR to a new FILE, while a server uses it."""
    from ..storage.sqlite import back_up

    size = back_up(folder, file)
    show(
        {"file": str(file), "bytes": size},
        f"{file} is a copy of the store in {folder}: {size:,} bytes.",
        as_json=as_json,
    )


def check(overlays: tuple[Path, ...], as_json: bool) -> None:
    """Check the contract, with overlays, against OpenAPI 3.0."""
    from ..contract.source import ContractError

    try:
        api, controls = _checked(overlays)
    except ContractError as error:
        faults = str(error).split("\n")
        for fault in faults:
            click.echo(f"Error: {printable(fault)}", err=True)
        if as_json:
            show({"ok": False, "faults": faults}, "", as_json=True)
        sys.exit(1)
    text = (
        f"The contract is valid OpenAPI 3.0: {api} operations, and {controls} of the control"
        " surface."
    )
    show({"ok": True, "operations": api, "controls": controls}, text, as_json=as_json)


def _checked(overlays: tuple[Path, ...]) -> tuple[int, int]:
    """How many operations the API and the control surface have.

    Raises ContractError. Prints warnings of examples, and of a scenario that does not start.
    """
    from ..app import contracts, create_app
    from ..contract import checks
    from ..contract.formats import formats
    from ..data.scenario import ScenarioError
    from ..domain.documents import is_document_here, is_document_unchecked
    from ..settings import Settings

    loaded = document, control, shipped, named = contracts(overlays)
    if shipped is None:  # else that is done
        named.refuse(checks.faults(document, document))
    named.refuse(checks.faults(control, control))
    of_requests = formats(is_document_here, is_document_unchecked)
    for part in (document, control):
        for warning in checks.unfit_examples(part, of_requests):
            _warn(str(named.named(warning)))
    if overlays:
        try:
            create_app(Settings(overlays=overlays), loaded)
        except ScenarioError as error:  # a fault of the data, not of the contract
            _warn(f"the scenario default does not start: {error}")
    return len(document.operations), len(control.operations)


def _warn(text: str) -> None:
    click.echo(f"Warning: {printable(text)}", err=True)


def mcp(
    address: str | None, sandbox: str | None, admin_key: str | None, control_key: str | None
) -> None:
    """Serve tools for coding agents on standard input and output."""
    if control_key is not None and sandbox is None:
        raise click.UsageError("--control-key is the key of one sandbox: give --sandbox too.")
    try:
        from ..tools.mcp.stdio import serve
    except ImportError as error:
        raise Unusable(missing(error)) from None
    with ExitStack() as stack:
        if address is None:
            from ..testing.server import running

            address = stack.enter_context(running()).url
        asyncio.run(serve(address, key_headers(admin_key, control_key), sandbox))


def replay(file: Path, overlays: tuple[Path, ...], as_json: bool) -> None:
    """Send the requests of FILE (- for standard input) to a fresh sandbox, and compare every
    answer.
    """
    import asyncio

    from ..storage.package import BadFile
    from ..tools.replay.replaying import replay as replayed

    try:
        report = asyncio.run(replayed(read_file(file), overlays))
    except BadFile as error:
        raise Unusable("\n  ".join(error.lines)) from None
    show(report, _text(report), as_json=as_json)
    sys.exit(0 if report["ok"] else 1)


def _text(report: Body) -> str:
    """The report without what is empty, and the diffs below it."""
    shown = {name: value for name, value in report.items() if value not in (None, {})}
    diffs = shown.pop("diffs")
    text = yaml_text(shown)
    for each in diffs:
        text += f"\n\n{each['method']} {each['path']} ({each['id']})\n{each['diff']}"
    return text
