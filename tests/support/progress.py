"""What a run shows while it goes on: a line for each file that is finished, instead of a dot for
each test.
"""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from typing import Any

import pytest


class Progress:
    """One per run; under xdist the controller's. Failures are shown at the end, as pytest does."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        reporter.showfspath = False
        self._left: Counter[str] = Counter()
        self._outcomes: dict[str, Counter[str]] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._total = self._finished = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """No dot."""
        category, _, word = yield
        return category, "", word

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the tests of each file, in a run of one process."""
        self._collected(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Count the tests of each file: every worker collects the same."""
        self._collected(ids)

    def _collected(self, ids: Iterable[str]) -> None:
        self._left = Counter(_file(nodeid) for nodeid in ids)
        self._total = self._left.total()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what became of a test, and show the line of a file that is finished."""
        file = _file(report.nodeid)
        outcomes = self._outcomes.setdefault(file, Counter())
        self._seconds[file] += report.duration
        if report.when == "call" or not report.passed:
            outcomes[report.outcome] += 1
        if report.when == "teardown":
            self._finished += 1
            self._left[file] -= 1
            if not self._left[file]:
                counts = ", ".join(
                    f"{number} {outcome}" for outcome, number in sorted(outcomes.items())
                )
                line = (
                    f"{self._finished:>6,}/{self._total:,}  {file}  {counts} "
                    f" {self._seconds[file]:.1f} s"
                )
                self._reporter.write_line(line, red="failed" in outcomes)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0].removeprefix("tests/")
