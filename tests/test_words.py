"""Identifiers and prose of the package say things by the words of the field."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

PACKAGE = Path(__file__).parents[1] / "stub_server"
WORDS = yaml.safe_load((Path(__file__).parent / "words.yaml").read_text(encoding="utf-8"))
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
CONTRACT = PACKAGE.parent / "openapi"
DOCUMENTS = sorted(path.relative_to(CONTRACT).as_posix() for path in CONTRACT.rglob("*.yaml"))
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def identifiers(module: str) -> Iterator[str]:
    """Every name that a module binds or uses, and its own."""
    yield Path(module).stem
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        match node:
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.arg(arg=name)
                | ast.alias(name=name)
            ):
                yield name.rpartition(".")[2]
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
            case ast.keyword(arg=str(name)):
                yield name


@pytest.mark.parametrize("module", MODULES)
def test_no_identifier_is_a_word_of_our_own(module: str) -> None:
    wrong = {
        name
        for name in identifiers(module)
        if name not in WORDS["allowed"]
        and {part.lower() for part in _PARTS.findall(name)} & {*WORDS["avoid"]}
    }
    assert set() == wrong


def test_every_exception_is_needed() -> None:
    used = {name for module in MODULES for name in identifiers(module)}
    assert set() == WORDS["allowed"].keys() - used


def texts() -> Iterator[str]:
    """Every help text and every string of the refusals."""
    for verb in (PACKAGE / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(verb.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    yield from (
        (PACKAGE.parent / "openapi" / "refusals.yaml").read_text(encoding="utf-8").splitlines()
    )


def descriptions(node: object) -> Iterator[str]:
    """Every description and summary of a document."""
    match node:
        case dict():
            for name, value in node.items():
                if name in ("description", "summary") and isinstance(value, str):
                    yield value
                else:
                    yield from descriptions(value)
        case list():
            for value in node:
                yield from descriptions(value)


@pytest.mark.parametrize("page", DOCUMENTS)
def test_descriptions_say_what_they_are_about(page: str) -> None:
    """A reader meets each one alone: in an editor, in a generated client, in a search."""
    avoided = re.compile("|".join(WORDS["descriptions"]))
    document = yaml.safe_load((CONTRACT / page).read_text(encoding="utf-8"))
    assert [] == [text for text in descriptions(document) if avoided.search(text)]


def test_help_and_refusals_avoid_phrases_that_are_read_twice() -> None:
    avoided = re.compile("|".join(WORDS["phrases"]), re.IGNORECASE)
    assert [] == [text for text in texts() if avoided.search(text)]
