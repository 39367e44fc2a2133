"""`make model`: plays random lives against the model.

Exit code 1 when the server and the model are of two minds, and when the sequences do not come far
enough.
"""

import sys

import click

from .machine import play
from .reached import missing


@click.command()
@click.option(
    "--sequences",
    default=300,
    show_default=True,
    help="How many random lives of thirty steps are played.",
)
@click.option("--seed", type=int, help="Other lives than those that are always played.")
def main(sequences: int, seed: int | None) -> None:
    """Random lives against the model."""
    tally = play(sequences, seed)
    wrong = missing(tally, sequences)
    click.echo(tally.line())
    for line in wrong:
        click.echo(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
