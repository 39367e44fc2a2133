"""Print the sizes of the rooms, and with `--way` the files that two requests go through."""

from pathlib import Path

import click

from .counting import (
    Size,
    by_room,
    changes,
    longest_functions,
    modules_of,
    never_imported,
    never_used,
    written,
)

ROOT = Path(__file__).parents[2]
LONGEST = 20
APART = ("console", "tools/verify")  # what is measured by itself


@click.command()
@click.option("--total", is_flag=True, help="One line.")
@click.option(
    "--way", is_flag=True, help="The files of a PIX order and of a list, in place of the sizes."
)
def main(*, total: bool, way: bool) -> None:
    """How much there is to understand, room by room."""
    if way:
        _print_ways()
        return
    modules = modules_of(ROOT / "stub_server")
    tests = modules_of(ROOT / "tests")
    counted = written(modules)
    size = Size.of(modules, counted)
    of_tests = Size.of(tests, written(tests))
    others = Size.of([module for module in modules if not module.name.startswith(APART)], counted)
    if total:
        rest = f"{others.nodes:,} without {', '.join(APART)}"
        click.echo(f"stub_server: {size.nodes:,} nodes, {rest}; tests: {of_tests.nodes:,} nodes")
        return
    for room, found in [
        *by_room(modules).items(),
        ("all", size),
        ("measured", others),
        ("tests", of_tests),
    ]:
        click.echo(f"{room:<12} {found}")
    click.echo(f"(measured: all without {', '.join(APART)})")
    _print_list(
        "Longest functions",
        [f"{lines:4} {where}" for lines, where in longest_functions(modules, LONGEST)],
    )
    _print_list("Modules that nobody imports", never_imported(modules))
    _print_list("Names that nobody uses", never_used(modules))


def _print_list(title: str, entries: list[str]) -> None:
    click.echo(f"\n{title}: {len(entries)}")
    for entry in entries:
        click.echo(f"  {entry}")


def _print_ways() -> None:
    from .way import ways  # which makes a server

    for name, files in ways().items():
        click.echo(
            f"{name}: {len(set(files))} files, {changes(files)} changes of file, {len(files)} calls"
        )
        before = ""
        for file in files:
            if file != before:
                click.echo(f"  {file}")
            before = file


if __name__ == "__main__":
    main()
