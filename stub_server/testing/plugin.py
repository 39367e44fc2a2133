"""The pytest plugin: a server for the run, a sandbox for each test, and what a failed test's
requests were refused for.

pytest loads it wherever the package is installed, so it imports what needs time only in fixtures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from . import AsyncSandbox, Sandbox, Server

_LONGEST = 40  # characters of a test's name in that of its sandbox
MARKER = (
    "sandbox(scenario=None, seed=None, now=None, **settings): what the sandbox of this test begins"
    " with"
)
_MADE = pytest.StashKey[list[Any]]()
_BEFORE = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, all of one group."""
    group = parser.getgroup("sandbox", "membership sandbox")
    group.addoption(
        "--sandbox-url",
        metavar="URL",
        help=(
            "use the server at URL instead of starting one; sandbox_args and sandbox_command are"
            " ignored"
        ),
    )
    group.addoption("--sandbox-admin-key", metavar="KEY", help="the admin key of that server")
    group.addoption(
        "--sandbox-record",
        metavar="DIR",
        type=Path,
        help="write a recording of each failed test's requests to DIR",
    )
    parser.addini(
        "sandbox_args",
        "flags of `stub-server serve` for the server of the run",
        type="args",
        default=[],
    )
    parser.addini(
        "sandbox_command",
        "how to run `stub-server`, if another Python has it",
        type="args",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.stash[_MADE] = []


@pytest.fixture(scope="session")
def sandbox_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """The server of the run, one for each worker of pytest-xdist; with `--sandbox-url` the one that
    is there.

    In the ini file `sandbox_args` has its flags, and `sandbox_command` how to run it if another
    Python has it.
    """
    from .http import Refused
    from .server import OWN, connected, running

    url = pytestconfig.getoption("--sandbox-url")
    if url is not None:
        server = connected(url, pytestconfig.getoption("--sandbox-admin-key"))
    else:
        server = running(
            *pytestconfig.getini("sandbox_args"),
            command=pytestconfig.getini("sandbox_command") or OWN,
        )
    with ExitStack() as stack:
        try:
            started = stack.enter_context(server)
        except (Refused, RuntimeError, OSError) as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        yield started


@pytest.fixture(scope="session")
def sandbox_factory(
    pytestconfig: pytest.Config, sandbox_server: Server
) -> Iterator[Callable[..., Sandbox]]:
    """A function that makes a sandbox, as `Server.sandbox` does.

    They are deleted at the end of the run.
    """
    made = pytestconfig.stash[_MADE]

    def factory(name: str | None = None, **wanted: Any) -> Sandbox:
        sandbox = sandbox_server.sandbox(name, **wanted)
        made.append(sandbox)
        return sandbox

    yield factory
    for sandbox in made:
        sandbox.delete()


@pytest.fixture
def sandbox(request: pytest.FixtureRequest, sandbox_server: Server) -> Iterator[Sandbox]:
    """A sandbox of the test's own.

    `@pytest.mark.sandbox(scenario="empty")` says what it begins with.
    """
    import httpx2

    from .http import Refused

    wanted: dict[str, Any] = {}
    # the nearest marker has the last word
    for marker in reversed([*request.node.iter_markers("sandbox")]):
        if marker.args:
            pytest.fail(
                f'@pytest.mark.sandbox takes keywords, such as scenario="empty": {MARKER}',
                pytrace=False,
            )
        wanted |= marker.kwargs
    name = _name_of(request.node.nodeid, request.config)
    if request.config.getoption("--sandbox-url") is not None:  # others may use the same server
        name = f"{name}-{uuid4().hex[:8]}"
    try:
        made = sandbox_server.sandbox(name, **wanted)
    except (Refused, httpx2.ConnectError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    with made:
        request.config.stash[_MADE].append(made)
        yield made
        request.config.stash[_MADE].remove(made)


@pytest.fixture
def async_sandbox(sandbox: Sandbox) -> AsyncSandbox:
    """The same sandbox with methods to await."""
    from .awaitable import AsyncSandbox

    return AsyncSandbox(sandbox)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember which sandboxes were made before the test."""
    item.stash[_BEFORE] = len(item.config.stash[_MADE])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Say why requests of a failed test were refused, and record them, while its sandbox exists."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.failed and report.when != "teardown":
        for sandbox in _sandboxes_of(item):
            try:
                _explain(sandbox, report, item.config.getoption("--sandbox-record"))
            except Exception as error:  # a server that is away must not hide what failed
                report.sections.append((f"sandbox {sandbox.name}", f"It cannot be asked: {error}"))
    return report  # type: ignore[return-value]


def _sandboxes_of(item: pytest.Item) -> list[Sandbox]:
    """The sandboxes of a test: those that were made in it, and those of wider scopes that a
    fixture gave it.
    """
    found: list[Sandbox] = []
    made, arguments = item.config.stash[_MADE], getattr(item, "funcargs", {}).values()
    for number, each in enumerate(made):
        if number >= item.stash[_BEFORE] or any(each is value for value in arguments):
            found.append(each)
    return found


def _explain(sandbox: Sandbox, report: pytest.TestReport, folder: Path | None) -> None:
    from ..core.text import printable_lines

    lines = [*map(printable_lines, sandbox.refusals())]
    if lines:
        report.sections.append(
            (f"sandbox {sandbox.name}: requests that were refused", "\n".join(lines))
        )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        file = (
            folder
            / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', report.nodeid)[:150]}.{sandbox.name[-8:]}.stub"
        )
        file.write_bytes(sandbox.recording())
        report.sections.append((f"sandbox {sandbox.name}", f"stub-server replay {file}"))


def _name_of(nodeid: str, config: pytest.Config) -> str:
    """A name that a server allows, the same in every run: the worker, the end of the node id, and a
    digest of it.
    """
    from hashlib import blake2b

    worker = getattr(config, "workerinput", {}).get("workerid", "main")
    words = re.sub(r"[^a-z0-9]+", "-", nodeid.rpartition("::")[2].lower())[:_LONGEST].strip("-")
    digest = blake2b(nodeid.encode(), digest_size=4).hexdigest()
    return "-".join(filter(None, (worker, words, digest)))
