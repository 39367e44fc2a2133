"""Planted defects: every kind of change is made, and every one of the list is in the code."""

from pathlib import Path

import stub_server

from ..mutants.changes import mutants
from ..mutants.planted import find

PACKAGE = Path(stub_server.__file__).parent
SOURCE = '''"""A module."""

NAME: str | None = "olá"


@wraps(1)
def f(a: int, b: int | None = 3) -> int | None:
    """Says 1 < 2."""
    log.warn("It is 1 < 2.", f"{a}é")
    if a < 2 and b is not None:
        return {"olá": a} | {"key": a + 1}
    return a if not b else None
'''


def test_every_kind_of_change_is_made_and_nothing_that_does_not_run_is_touched() -> None:
    found = [(m.line, m.before, m.after) for m in mutants(SOURCE, "m.py")]
    assert [
        (3, '"olá"', "('olá_')"),
        (7, "3", "(4)"),
        (9, 'log.warn("It is 1 < 2.", f"{a}é")', "pass"),
        (10, "a < 2 and b is not None", "(a < 2 or b is not None)"),
        (10, "a < 2", "(a <= 2)"),
        (10, "a < 2 and b is not None", "(not (a < 2 and b is not None))"),
        (10, "2", "(3)"),
        (10, "b is not None", "(b is None)"),
        (11, 'return {"olá": a} | {"key": a + 1}', "return None"),
        (11, '{"olá": a} | {"key": a + 1}', "({'olá': a})"),
        (11, '"olá"', "('olá_')"),
        (11, '"key"', "('key_')"),
        (11, "a + 1", "(a - 1)"),
        (11, "1", "(2)"),
        (12, "return a if not b else None", "return None"),
        (12, "a if not b else None", "(None if not b else a)"),
        (12, "not b", "(b)"),
    ] == found


def test_every_entry_of_the_list_is_in_the_code() -> None:
    """A commit that moves or rewrites the code of an entry changes `tests/mutants/planted.yaml`
    with it.
    """
    found, lost = find(PACKAGE)
    assert [] == lost
    assert 200 == len({defect.mutant for defect in found})
