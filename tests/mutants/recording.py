"""Which tests execute which lines of the modules with defects: one run of all tests, or of the short run, with
coverage listening.

This module is the plugin of that run (`-p tests.mutants.recording`) and reads what it has written.
"""

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from coverage import Coverage, CoverageData

from .changes import Mutant
from .planted import find

_SECONDS = "seconds.json"


class Recorder:
    """In each process of a run: coverage's context is the test that runs."""

    def __init__(self, root: Path) -> None:
        planted, _ = find(root / "stub_server")
        files = [root / "stub_server" / name for name in {each.mutant.module for each in planted}]
        # Imported now, or the first test would execute what an import does.
        modules = [
            import_module(".".join(file.relative_to(root).with_suffix("").parts)) for file in files
        ]
        self._cached = [
            part
            for module in modules
            for part in vars(module).values()
            if hasattr(part, "cache_clear")
        ]
        self._coverage = Coverage(
            str(root / ".coverage"),
            data_suffix=True,
            include=[str(file) for file in files],
            config_file=False,
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Name the test; the servers of tests run in threads of this process."""
        self._coverage.switch_context(item.nodeid)
        for function in self._cached:  # or only the first test would execute its lines
            function.cache_clear()
        return (yield)

    def pytest_unconfigure(self) -> None:
        """Write the data."""
        self._coverage.stop()
        self._coverage.save()


class Durations:
    """In the process that reports: how long each test took that passed."""

    def __init__(self, root: Path) -> None:
        self._file = root / _SECONDS
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up setup, call and teardown."""
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_unconfigure(self) -> None:
        """Write the data. What fails without a defect notices none."""
        passed = {
            test: seconds for test, seconds in self._seconds.items() if test not in self._failed
        }
        self._file.write_text(json.dumps(passed), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Record the tests of this process."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config.rootpath))
    else:
        config.pluginmanager.register(Durations(config.rootpath))


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a run has shown."""

    seconds: dict[str, float]
    """By test."""
    lines: dict[str, dict[int, list[str]]]
    """The tests that execute a line, by module and line."""

    def tests_of(self, mutant: Mutant, source: str, bound: float) -> tuple[list[str], float]:
        """The tests that execute what is changed, file by file, and the seconds they took.

        Quick files come first, and files that execute lines of the module which few tests execute:
        almost every test makes a sandbox, which executes many. What no test executes, or import
        alone, is tried with all of the module.
        """
        lines = self.lines.get(mutant.module, {})
        first = _statement(ast.parse(source), mutant)
        executed = {
            test for line in range(first, mutant.end_line + 1) for test in lines.get(line, ())
        }
        executed = executed or {test for tests in lines.values() for test in tests}
        special: dict[str, float] = defaultdict(float)
        for tests in lines.values():
            for test in tests:
                special[_file(test)] += 1 / len(tests)
        files: dict[str, list[str]] = defaultdict(list)
        for test in self.seconds:
            if test in executed:
                files[_file(test)].append(test)
        chosen: list[str] = []
        total = 0.0
        for file in sorted(files, key=lambda file: self._total(files[file]) / special[file]):
            seconds = self._total(files[file])
            if total + seconds <= bound or not chosen:
                chosen += files[file]
                total += seconds
        return chosen, total

    def _total(self, tests: list[str]) -> float:
        return sum(self.seconds[test] for test in tests)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _statement(tree: ast.AST, mutant: Mutant) -> int:
    """The line on which the smallest statement around a change begins: coverage may know no other
    line of it.
    """
    return max(
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and node.lineno <= mutant.line
        and mutant.end_line <= (node.end_lineno or 0)
    )


def record(copy: Path, short: bool) -> Recorded:
    """Run the tests of a copy, on every core."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.mutants.recording",
        "-p",
        "no:cacheprovider",
    ]
    command += [
        "-n",
        "auto",
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        *(["--short"] if short else []),
    ]
    subprocess.run(command, cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, check=False)
    data = CoverageData(str(copy / ".coverage"))
    for file in sorted(copy.glob(".coverage.*")):
        part = CoverageData(str(file))
        part.read()
        data.update(part)
    lines = {
        Path(file).relative_to(copy / "stub_server").as_posix(): data.contexts_by_lineno(file)
        for file in data.measured_files()
    }
    seconds: dict[str, float] = json.loads((copy / _SECONDS).read_text(encoding="utf-8"))
    return Recorded(seconds, lines)
