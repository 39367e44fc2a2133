"""`stub-server init`: writes what a repository needs to use the sandbox with a tool."""

import os
from collections.abc import Mapping
from pathlib import Path

import click

from .options import Unusable

# By tool: the folder in fixtures/, and where each of its files goes.
TOOLS: Mapping[str, Mapping[str, str]] = {
    "schemathesis": {
        "schemathesis.toml": "schemathesis.toml",
        "sandbox_hooks.py": "sandbox_hooks.py",
        "sandbox_formats.py": "sandbox_formats.py",
        "contract-tests.yml": ".github/workflows/contract-tests.yml",
    }
}


@click.command(short_help="Write files for a tool, such as schemathesis.")
@click.argument("tool", type=click.Choice(sorted(TOOLS)))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path("."))
def init(tool: str, folder: Path) -> None:
    """Write settings, hooks and a workflow for TOOL to FOLDER. No file that exists is overwritten."""
    from ..app import data_dir

    targets = {data_dir("fixtures") / tool / name: folder / place for name, place in TOOLS[tool].items()}
    taken = [str(target) for target in targets.values() if os.path.lexists(target)]
    if taken:
        raise Unusable(f"{', '.join(taken)} exists already. Remove it, or name another folder.")
    try:
        for source, target in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:  # follows no link that somebody puts there meanwhile
                file.write(source.read_bytes())
            click.echo(target)
    except OSError as error:
        raise Unusable(f"{error.filename}: {error.strerror}.") from None
