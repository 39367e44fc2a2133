"""The reference pages are those that `make docs` would write now, and leave nothing out."""

from ..reference.pages import FOLDER, written


def test_the_reference_pages_are_up_to_date() -> None:
    """If this fails: `make docs`."""
    assert written() == {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
