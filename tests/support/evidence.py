"""The pytest plugin around the ledger: it listens to every client, and holds each test and the
whole run to it.
"""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from weakref import ref

import httpx2
import pytest

from stub_server.contract.document import Operation
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.step import Step

from . import wire
from .contract import document
from .ledger import Answer, Fact, Ledger, operation_named, promised

TESTS = Path(__file__).parents[1]
DEFECTS = "defects"
AT_ONCE = ("project.close",)  # jobs that finish the work of the operation which sets them


class Evidence:
    """One per process.

    Under xdist each worker tells the controller what it has seen, and that one judges the run.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.ledger = Ledger()
        self._visited: set[Path] = set()
        self._whole = not any("::" in arg for arg in config.args)
        self._is_worker = hasattr(config, "workerinput")
        self._undo: list[Callable[[], None]] = []
        config.addinivalue_line(
            "markers", f"{DEFECTS}: makes the server answer what its contract lacks, on purpose"
        )
        # By sandbox, as copies of one set equal timers; what comes after it may have the same id.
        self._at_once: dict[tuple[int, int], tuple[ref[Sandbox], Operation]] = {}
        self._listen()

    # -- listening

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def _listen(self) -> None:
        self._replace(httpx2.Client, "send", self._client)
        self._replace(wire, "exchange", self._socket)
        self._replace(Sandbox, "take", self._step)

    def _client(self, send: Any) -> Any:
        def sent(client: httpx2.Client, request: httpx2.Request, **options: Any) -> httpx2.Response:
            response: httpx2.Response = send(client, request, **options)
            if "x-request-id" in response.headers and response.is_closed:
                path = request.url.raw_path.decode().partition("?")[0]
                answer = _answer(
                    request.method, path, response.status_code, response.headers, response
                )
                self.ledger.answered(
                    f"{request.url.scheme}://{request.url.netloc.decode()}", answer
                )
            return response

        return sent

    def _socket(self, exchange: Any) -> Any:
        def exchanged(port: int, method: str, request: bytes) -> wire.Answer:
            got: wire.Answer = exchange(port, method, request)
            headers = dict(got.headers)
            if "x-request-id" in headers:
                path = request.split(b" ", 2)[1].decode("latin-1").partition("?")[0]
                self.ledger.answered(
                    f"http://127.0.0.1:{port}", _answer(method, path, got.status, headers, got)
                )
            return got

        return exchanged

    def _step(self, take: Any) -> Any:
        # Inside the server, because only there is it certain which operation an event of the log
        # belongs to.
        def taken(sandbox: Sandbox, step: Step, *opened: Any) -> None:
            take(sandbox, step, *opened)
            if sandbox.rules.payload_keys.keys() != document().events.keys():
                return  # a corrected contract promises other events
            own = operation = operation_named(step.cause.operation)
            # what an operation leaves to be done at once is its own work
            for timer in step.timers_fired:
                setter, meant = self._at_once.pop((id(sandbox), timer[1]), (None, None))
                if setter is not None and setter() is sandbox:
                    operation = meant
            if operation is not None:
                self.ledger.raised(operation, [event.type for event in step.events])
            if own is not None:
                for timer in step.timers_set:
                    if timer[2] in AT_ONCE:
                        self._at_once[id(sandbox), timer[1]] = ref(sandbox), own

        return taken

    # -- judging

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Name the test that runs."""
        self.ledger.test = item.nodeid
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """No test passes that saw an answer or an event which the contract does not have."""
        yield
        seen = self.ledger.take_undocumented()
        assert not seen or item.get_closest_marker(DEFECTS), (
            f"not in the contract: {'; '.join(dict.fromkeys(seen))}"
        )

    def pytest_collect_file(self, file_path: Path) -> None:
        """Note what is collected."""
        self._visited.add(file_path)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """A part was left out.

        What is for the night or the short run alone is no part of a whole run.
        """
        own = all(
            item.get_closest_marker("night") or item.get_closest_marker("short") for item in items
        )
        self._whole = self._whole and own

    def pytest_collection_finish(self) -> None:
        """Every file that is there, or the run is not a whole one."""
        self._whole = self._whole and set(TESTS.rglob("test_*.py")) <= self._visited

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A whole run without the whole evidence has failed."""
        stopped = session.shouldstop or session.shouldfail or exitstatus not in (0, 1)
        self._whole = self._whole and not stopped
        if self._is_worker:
            reached = [(*fact, test) for fact, test in self.ledger.reached.items()]
            # xdist adds it to a worker's config
            told: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]
            told.update({"evidence_is_whole": self._whole, "evidence": reached})
        elif self._whole and self.ledger.gaps():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what a worker has seen.

        One that crashed has told nothing, and the run is not a whole one.
        """
        told = getattr(node, "workeroutput", {})
        self._whole = self._whole and told.get("evidence_is_whole", False)
        for operation, kind, value, test in told.get("evidence", ()):
            self.ledger.reached.setdefault(Fact(operation, kind, value), test)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table: each operation, what it promises, and the first test that got it."""
        if not self._whole or self._is_worker:
            return
        write = terminalreporter.write_line
        reached = self.ledger.reached
        terminalreporter.section("evidence ledger")
        total = got = 0
        for operation in document().operations.values():
            facts = promised(operation)
            have = [fact for fact in facts if fact in reached]
            total = total + len(facts)
            got = got + len(have)
            write(f"{operation.id}  {operation.method} {operation.path}  {len(have)}/{len(facts)}")
            for fact in facts:
                mark = "✓" if fact in reached else "✗"
                write(f"  {mark} {fact.value:<34} {reached.get(fact, 'no test reached it')}")
        write(
            f"{got} of {total} documented statuses, codes and events of"
            f" {len(document().operations)} operations reached"
        )
        for fact in self.ledger.gaps():
            write(f"GAP    {fact}", red=True)

    def pytest_unconfigure(self) -> None:
        """Listen no more."""
        while self._undo:
            self._undo.pop()()


def _answer(method: str, path: str, status: int, headers: Any, body: Any) -> Answer:
    simulated = "x-sandbox-simulated" in headers  # whose body may be no JSON, though it says so
    told = (
        status >= 400
        and method != "HEAD"
        and "json" in headers.get("content-type", "")
        and not simulated
    )
    code = body.json().get("code") if told else None
    return Answer(method, path, status, code, simulated)
