"""Planted defects: every one of them is code that differs, and the sample is the same for a seed."""

import ast
from pathlib import Path

import stub_server

from ..mutants.reasons import Reasons
from ..mutants.relevant import stages
from ..mutants.sampling import ROOMS, mutants, sample

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


def test_a_change_stands_in_the_place_of_what_it_replaces() -> None:
    """Also behind letters of two bytes."""
    (key,) = [mutant for mutant in mutants(SOURCE, "m.py") if mutant.before == '"key"']
    assert SOURCE.replace('"key"', "('key_')") == key.applied(SOURCE)


def test_the_sample_is_code_and_the_same_for_a_seed() -> None:
    chosen = sample(PACKAGE, 200, 1)
    assert chosen == sample(PACKAGE, 200, 1) != sample(PACKAGE, 200, 2)
    assert 200 == len(set(chosen))
    for mutant in chosen:
        source = (PACKAGE / mutant.module).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(source)) != ast.dump(ast.parse(mutant.applied(source))), mutant


def test_a_sample_stays_when_other_code_changes() -> None:
    """Lines that move, and new changes between, leave the rank of the others as it was."""
    grown = SOURCE.replace("NAME:", "NEW = a < 7\n\n\nNAME:")
    ranks = {mutant.rank(1) for mutant in mutants(grown, "m.py")}
    assert {mutant.rank(1) for mutant in mutants(SOURCE, "m.py")} < ranks
    assert len(ranks) == len(list(mutants(grown, "m.py")))


def test_every_reason_is_of_a_change_that_can_be_made() -> None:
    """Code that is gone needs no reason."""
    known = Reasons.read().known
    modules = {module for module, _, _ in known}
    found = [mutant for module in modules for mutant in mutants((PACKAGE / module).read_text(encoding="utf-8"), module)]
    assert set() == set(known) - {(mutant.module, mutant.code, mutant.change) for mutant in found}


def test_tests_that_are_about_a_module_are_asked_first_and_each_once() -> None:
    tests = Path(__file__).parents[1]
    for room in ROOMS:
        for file in (PACKAGE / room).rglob("*.py"):
            names = [name for group in stages(tests, file.relative_to(PACKAGE).as_posix()) for name in group]
            assert len(set(names)) == len(names)
    first = stages(tests, "domain/boleto.py")[0]
    assert ["tests/journeys/test_every_success.py", "tests/unit/test_boleto.py"] == first
