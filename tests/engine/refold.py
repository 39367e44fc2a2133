"""Another process: reads steps that a test has written down, folds them, and says whether the worlds are the same."""

import pickle
import sys
from pathlib import Path

from .inside import Inside
from .small import origin, small_server
from .state import differences, whole


def main() -> int:
    """Print how many worlds there were; 1 and what is different where one is."""
    worlds = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301 - written by the test that runs this
    wrong = 0
    with small_server() as app:
        inside = Inside(app)
        for number, (steps, expected) in enumerate(worlds):
            world = origin(app)
            for step in steps:
                world.fold(step)
            found = differences(expected, whole(inside, world))
            if found:
                wrong += 1
                print(f"world {number}: {sorted(found)[:10]}", file=sys.stderr)
        inside.close()
    print(f"{len(worlds)} worlds, {wrong or 'none'} of them different")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
