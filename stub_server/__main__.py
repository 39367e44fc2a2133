"""The command `stub-server`, also as `python -m stub_server`."""

import sys
from pathlib import Path

from .cli import process


def run() -> None:
    """Run the command. Whoever interrupts it while modules are imported sees no traceback."""
    try:
        process.prepare()
        from .cli.command import main

        is_module = Path(sys.argv[0]).name == "__main__.py"
        main(prog_name="stub-server" if is_module else None)
    except KeyboardInterrupt:
        sys.exit(process.INTERRUPTED)
    except BrokenPipeError:  # there is nobody to be told of a mistake
        process.discard_output()
        sys.exit(process.CLOSED_PIPE)


if __name__ == "__main__":
    run()
