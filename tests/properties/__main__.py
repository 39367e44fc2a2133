"""`make model`: plays random lives against the model, and plants defects in the rules that the model must find.

Exit code 1 when the server and the model are of two minds, when the sequences do not come far enough, and when a defect
is not found.
"""

import json
import subprocess
import sys

import click

from .machine import play
from .planted import DEFECTS
from .reached import missing


@click.command()
@click.option("--sequences", default=300, show_default=True, help="How many random lives of thirty steps are played.")
@click.option("--seed", type=int, help="Other lives than those that are always played.")
def main(sequences: int, seed: int | None) -> None:
    """Random lives against the model, then nine planted defects."""
    tally = play(sequences, seed)
    wrong = missing(tally, sequences)
    click.echo(tally.line())
    # In a process of their own, for what they patch.
    told = subprocess.run([sys.executable, "-m", "tests.properties.planted"], stdout=subprocess.PIPE, check=True)
    for name, found in json.loads(told.stdout).items():
        what = " ".join((DEFECTS[name].__doc__ or "").split())
        click.echo(f"{what}\n    {found[:160] if found else 'NOT FOUND'}")
        if found is None:
            wrong.append(f"a planted defect is not found: {name}")
    for line in wrong:
        click.echo(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
