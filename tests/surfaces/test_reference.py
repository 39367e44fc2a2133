"""The reference pages are those that `make docs` would write now, and leave nothing out."""

import re

from ..reference.contract import API, CONTROL
from ..reference.pages import FOLDER, written


def test_the_reference_pages_are_up_to_date() -> None:
    """If this fails: `make docs`."""
    assert written() == {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}


def test_every_code_of_an_operation_has_a_section() -> None:
    """The page of an operation links to it."""
    sections = re.findall("^## (.+)$", (FOLDER / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    operations = [*API.operations.values(), *CONTROL.operations.values()]
    answers = [answer for operation in operations for answer in operation.responses.values()]
    assert set() == {name for answer in answers for name in answer.codes} - {*sections}
