"""`python -m tests.verify.server --mutant NAME`: a mutated sandbox, served as `stub-server serve`
serves its own.

`POST /_mutants` with a list of names sets others, and resets the sandbox.
"""

from functools import partial

import click

from stub_server.app import create_app
from stub_server.cli import listening, serving
from stub_server.settings import Settings

from .backend import Backend
from .mutants import act_of


@click.command(context_settings={"show_default": True})
@click.option("--port", type=int, default=0, help="Port to listen on; 0 picks a free one.")
@click.option("--mutant", "mutants", multiple=True, help="How it departs; repeatable.")
@click.option("--scenario", default="default", help="The data to begin with, by name or file.")
@click.option("--seed", type=int, default=42, help="The same seed gives the same data.")
@click.option("--delay", type=float, default=0.0, help="Seconds that each answer takes more.")
def main(port: int, mutants: tuple[str, ...], scenario: str, seed: int, delay: float) -> None:
    """Serve until interrupted. The line `ready URL` says that requests are answered."""
    settings = Settings(port=port, scenario=scenario, seed=seed, log="quiet")
    with listening.listen(settings) as listeners:
        settings = listening.with_port(settings, listeners[0])
        app = create_app(settings)
        acts = map(act_of, mutants)
        app.middlewares.insert(0, partial(Backend, acts=[*acts], find=act_of, delay=delay))
        print(f"ready {settings.url}", flush=True)
        serving.run(app, settings, listeners)


if __name__ == "__main__":
    main()
