"""Regular expressions of the package, found in its source: whose text each reads, and that
strangers' is read once.

`expressions.yaml` has them all. An expression that strangers' text reaches is tried with texts made
of one that it
accepts: the beginning, one piece again and again, and an end. Time that grows faster than the text
fails.
"""

import ast
import re
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from stub_server.core.text import glob

PACKAGE = Path(import_module("stub_server").__file__ or "").parent
LISTED = Path(__file__).with_name("expressions.yaml")
_FUNCTIONS = frozenset(
    ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
)
_WAYS = frozenset(("match", "fullmatch", "search"))
LONG = 1_500  # characters of a text, and how many times as long the next one is
TIMES = 4
QUICK = 0.0005  # seconds of CPU time; what takes longer is tried with a longer text
SHORT = {**dict.fromkeys(range(16, 44, 4), 0.005), 300: 0.010}
"""Characters of texts that come before, and what these may take: a longer one might never end."""
MOST_GROWTH = 2.5 * TIMES
_ALWAYS = 'aA0 .-/:"\\!@é'
_ENDS = ("", "\0", " ", "a")
_MOST_LETTERS = 20
_MOST_CUTS = 6


class Expression(NamedTuple):
    """A call of `re`.

    `name` is the module and what it is assigned to, or the function that it is in.
    """

    name: str
    module: str
    pattern: ast.expr
    flags: list[ast.expr]
    way: str  # the method that reads: `finditer` where it is not known

    @property
    def compiled(self) -> re.Pattern[Any]:
        """The expression, from what its module has."""
        call = ast.Call(
            ast.Attribute(ast.Name("re", ast.Load()), "compile", ast.Load()),
            [self.pattern, *self.flags],
            [],
        )
        code = compile(ast.fix_missing_locations(ast.Expression(call)), self.module, "eval")
        found: re.Pattern[Any] = eval(code, {**vars(import_module(self.module)), "re": re})  # noqa: S307 - our own source
        return found


class _Finder(ast.NodeVisitor):
    """Finds the calls of `re` in one module."""

    def __init__(self, file: Path) -> None:
        self.path = file.relative_to(PACKAGE)
        self.module = ".".join(("stub_server", *self.path.with_suffix("").parts))
        self.found: list[Expression] = []
        self._within: list[str] = []
        self._way = ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._under(node.name, node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._under(node.name, node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._under(ast.unparse(node.targets[0]), node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        before = self._way
        self._way = node.attr
        self.generic_visit(node)
        self._way = before

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if (
            isinstance(function, ast.Attribute)
            and ast.unparse(function.value) == "re"
            and function.attr in _FUNCTIONS
        ):
            way = self._way if function.attr == "compile" else function.attr
            flags = [each for each in node.args[1:] if "re." in ast.unparse(each)]
            name = f"{self.path.as_posix()} {self._within[0] if self._within else ''}".strip()
            way = way if way in _WAYS else "finditer"
            self.found.append(Expression(name, self.module, node.args[0], flags, way))
        before = self._way
        self._way = ""
        self.generic_visit(node)
        self._way = before

    def _under(self, name: str, node: ast.AST) -> None:
        self._within.append(name)
        self.generic_visit(node)
        self._within.pop()


@cache
def expressions() -> dict[str, Expression]:
    """All of the package; the second one of a name has a number."""
    found = {}
    numbers: Counter[str] = Counter()
    for file in sorted(PACKAGE.rglob("*.py")):
        finder = _Finder(file)
        finder.visit(ast.parse(file.read_text(encoding="utf-8")))
        for each in finder.found:
            numbers[each.name] += 1
            found[each.name if numbers[each.name] == 1 else f"{each.name} {numbers[each.name]}"] = (
                each
            )
    return found


READERS: dict[str, str | list[str]] = yaml.safe_load(LISTED.read_text(encoding="utf-8"))


def test_every_expression_is_listed_with_whose_text_it_reads() -> None:
    assert READERS.keys() == expressions().keys()


# -- the judge


class Judge:
    """Tries one expression."""

    def __init__(self, pattern: re.Pattern[Any], way: str, sample: str) -> None:
        """`sample` is a text that it accepts."""
        self._pattern = pattern
        self._way = way
        self._sample = sample

    @property
    def accepts_sample(self) -> bool:
        """Whether the sample is one."""
        way = "search" if self._way == "finditer" else self._way
        return getattr(self._pattern, way)(self._given(self._sample)) is not None

    def slow_texts(self) -> Iterator[tuple[str, str]]:
        """Beginnings and pieces with which the time grows faster than the text."""
        for start, piece in self._attacks():
            if any(self._is_slow(start, piece, end) for end in _ENDS):
                yield start, piece

    def _attacks(self) -> Iterator[tuple[str, str]]:
        sample = self._sample
        letters = self._letters
        cuts = sorted({len(sample) * number // _MOST_CUTS for number in range(_MOST_CUTS + 1)})
        parts = {sample[i:j] for i in cuts for j in cuts if i < j}
        pairs = ["".join(pair) for pair in product(letters, repeat=2) if pair[0] != pair[1]]
        for cut in cuts:
            yield from ((sample[:cut], piece) for piece in (*letters, *parts))
        yield from (("" if self._way == "finditer" else sample, piece) for piece in pairs)

    def _is_slow(self, start: str, piece: str, end: str) -> bool:
        for size, most in SHORT.items():
            if self._takes_longer(start + piece * (size // len(piece)) + end, most):
                return True
        number = LONG // len(piece) + 1
        before, after = (start + piece * number * times + end for times in (1, TIMES))
        return self._takes_longer(before, QUICK) and self._least(after) > MOST_GROWTH * self._least(
            before
        )

    def _takes_longer(self, text: str, most: float) -> bool:
        return self._time(text) > most and self._least(text) > most

    def _least(self, text: str) -> float:
        return min(self._time(text) for _ in range(3))

    def _time(self, text: str) -> float:
        """Seconds of CPU time."""
        given = self._given(text)
        began = time.thread_time()
        if self._way == "finditer":
            for _ in self._pattern.finditer(given):
                pass
        else:
            getattr(self._pattern, self._way)(given)
        return time.thread_time() - began

    def _given(self, text: str) -> Any:
        return text.encode() if isinstance(self._pattern.pattern, bytes) else text

    @cached_property
    def _letters(self) -> str:
        """Letters that the pattern names, and some that it may not."""
        source = self._pattern.pattern
        named = source.decode("latin-1") if isinstance(source, bytes) else source
        return "".join(dict.fromkeys(_ALWAYS + named))[:_MOST_LETTERS]


@pytest.mark.promise("no-regular-expression-reads-stranger")
@pytest.mark.parametrize(
    ("name", "sample"),
    [(name, each) for name, found in READERS.items() if isinstance(found, list) for each in found],
)
@pytest.mark.matrix
def test_an_expression_reads_strangers_text_once(name: str, sample: str) -> None:
    expression = expressions()[name]
    judge = Judge(expression.compiled, expression.way, sample)
    assert judge.accepts_sample
    assert next(judge.slow_texts(), None) is None


@pytest.mark.parametrize(
    ("pattern", "way", "sample"),
    [
        (r'("(?:[^"\\]|\\.)*")(:?)', "finditer", '"a"'),
        (r"([!-~]{1,100}):[ \t]*([\x20-\x7e]*)", "fullmatch", "a: b"),
        (r"\S+@\S+", "fullmatch", "a@b"),
        (r"(\Ws)?\W*$", "finditer", "order's"),
        (r"[a-z]*[0-9]", "search", "a1"),
        (r"(a+)+$", "match", "aa"),
        (r"(\w|\w\w)*!", "match", "ab!"),
    ],
)
def test_the_judge_knows_expressions_that_read_again_and_again(
    pattern: str, way: str, sample: str
) -> None:
    """The first were in the console: 16 KB kept a server busy for two seconds."""
    assert next(Judge(re.compile(pattern), way, sample).slow_texts(), None) is not None


@pytest.mark.parametrize(
    "pattern", ["*a" * 90, "*" + "a" * 180 + "b", "*?" * 90, "a*" * 90 + "b", "*a?" * 60, "[" * 180]
)
def test_a_pattern_with_stars_is_matched_in_time(pattern: str) -> None:
    """Texts are cut, and what stands between two stars is looked for once."""
    for text in ("a" * 100_000, "ab" * 50_000, "[" * 100_000):
        began = time.thread_time()
        glob(pattern, text)
        assert time.thread_time() - began < 1, "going back again and again takes minutes"
