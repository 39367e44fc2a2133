"""Where the files are that the package ships: `openapi/`, `fixtures/` and `docs/`."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def data_dir(name: str) -> Path:
    """`openapi/`, `fixtures/` or `docs/`: beside the package in a checkout, inside it
    when installed.
    """
    inside = PACKAGE / "_data" / name
    return inside if inside.is_dir() else PACKAGE.parent / name


FIXTURES = data_dir("fixtures")
