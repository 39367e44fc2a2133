"""The plugin in a run of its own, as a user has it: nothing to import, nothing to
write but a test.
"""

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from ..support import forked
from ..support.ends import answers, within
from ..support.install import needed
from ..support.live import NO_TLS, Live
from ..support.make import Json, done, list_of

pytestmark = [pytest.mark.check, pytest.mark.turn]
# Plugins of this environment that no test here is about take half of the time that pytest does.
PLAIN = ("-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest")
REFUSED = """
def test_an_order(sandbox):
    assert 201 == sandbox.api.post("/v2/orders/pix", json={"planId": "x"}).status_code
"""
REFUSED_IN_A_FIXTURE = """
import pytest

@pytest.fixture
def paid(sandbox):
    return sandbox.pay("nope")

def test_a_paid_order(paid): ...
"""
REFUSED_OFTEN = """
def test_an_order(sandbox):
    for _ in range(3):
        sandbox.api.post("/v2/orders/pix", json={"planId": "x"})
    assert 200 == sandbox.api.get("/v2/plans/x").status_code
"""
UNITTEST = """
import unittest
from stub_server.testing import running

class Checkout(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(running())

    def test_an_order(self):
        with self.server.sandbox() as sandbox:
            self.assertEqual(201, sandbox.api.post("/v2/orders/pix", json={"planId": "x"}).status_code)

    def test_a_payment(self):
        with self.server.sandbox() as sandbox:
            sandbox.pay(sandbox.pay(sandbox.order()))
"""
THREE_LINES = """
def test_checkout(sandbox):
    order = sandbox.pay(sandbox.order())
    assert sandbox.subscription(order)["customer"]["email"] == "cliente1@example.com"
"""
MISUSED = """
import os, signal, subprocess, sys
import pytest

@pytest.mark.sandbox("empty")
def test_an_argument_without_a_name(sandbox): ...

@pytest.mark.sandbox(senario="empty")
def test_an_argument_that_there_is_not(sandbox): ...

@pytest.mark.sandbox(now="yesterday")
def test_a_value_that_there_is_not(sandbox): ...

def test_an_event_that_there_is_not(sandbox):
    sandbox.inbox("order.*").wait_for("order.payed", timeout=0)

def test_another_record(sandbox):
    sandbox.pay({"detail": "refused"})

def test_a_server_that_dies(sandbox, sandbox_server):
    (server,) = [int(pid) for pid in open(f"/proc/self/task/{os.getpid()}/children").read().split()]
    os.kill(server, signal.SIGKILL)
    os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
    sandbox.order()

def test_after_it(sandbox): ...
"""
OF_ONES_OWN = """
import pytest

@pytest.fixture(scope="module")
def shop(sandbox_factory):
    return sandbox_factory("shop")

def test_a_request_of_another_test(sandbox_factory):
    assert 404 == sandbox_factory("first").api.get("/v2/nowhere").status_code

@pytest.fixture
def broken_shop(shop):
    shop.fault("outtage")

def test_a_fixture(broken_shop): ...
"""
MANY = """
import pytest

@pytest.mark.parametrize("number", range(12))
def test_alone(sandbox, number):
    assert sandbox.requests() == []
    sandbox.customer()
"""


SEEDED = """
def test_the_seed(sandbox):
    assert 42 == sandbox.control.get("/sandboxes/" + sandbox.name).json()["sandbox"]["seed"]
"""
ENDLESS = """
import pathlib, time

def test_of_a_minute(sandbox):
    pathlib.Path("draft").write_text(sandbox.url)
    pathlib.Path("draft").rename("url")
    time.sleep(60)
"""


def run(folder: Path, test: str, *flags: str, ini: str = "") -> subprocess.CompletedProcess[str]:
    """pytest in a folder with one test file."""
    (folder / "test_it.py").write_text(test)
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}")
    command = [sys.executable, "-m", "pytest", *PLAIN, "-W", "error", *flags]
    # pytest repeats messages where these are set.
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_what_fails_says_what_was_refused_and_leaves_a_recording(tmp_path: Path) -> None:
    """A test, and a fixture of one."""
    ended = run(tmp_path, REFUSED + REFUSED_IN_A_FIXTURE, "--sandbox-record", "seen")
    assert 1 == ended.returncode, ended.stdout
    for part in (
        "requests that were refused",
        "POST /v2/orders/pix answered 422 validation_error",
        "body.projectId",
    ):
        assert part in ended.stdout
    in_a_fixture, recording = sorted((tmp_path / "seen").iterdir())
    for each in (in_a_fixture, recording):
        assert f"stub-server replay seen/{each.name}" in ended.stdout
    again = forked.run([sys.executable, "-m", "stub_server", "replay", str(recording)])
    assert (0, True) == (again.returncode, "requests: 1\nsame: 1\n" in again.stdout), again.stdout


def test_equal_refusals_are_explained_once(tmp_path: Path) -> None:
    ended = run(tmp_path, REFUSED_OFTEN)
    assert 1 == ended.stdout.count("POST /v2/orders/pix answered 422 validation_error"), (
        ended.stdout
    )
    assert 1 == ended.stdout.count("body.projectId")
    assert 1 == ended.stdout.count("GET /v2/plans/x answered 404 not_found\n")


def test_a_failed_test_of_unittest_says_what_was_refused(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(UNITTEST)
    ended = subprocess.run(
        [sys.executable, "-m", "unittest", "-q", "test_it"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    for part in (
        "POST /v2/orders/pix answered 422 validation_error",
        "succeeds with body.projectId",
        "answered 409 order_already_paid",
    ):
        assert part in ended.stderr, ended.stderr


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = run(tmp_path, SEEDED, ini="sandbox_command = nowhere stub-server\n")
    assert (1, True) == (ended.returncode, "'nowhere'" in ended.stdout), ended.stdout


CODECS = ("brotli", "backports.zstd")
"""What httpx2 imports where it is installed, to read compressed answers."""


def test_the_kit_imports_nothing_but_pytest_and_httpx2() -> None:
    """So it can be installed without what the server needs, beside any version of it."""
    program = (
        "import sys; before = {*sys.modules}; import pkgutil, importlib, stub_server.testing as"
        " kit\n"
    )
    program += (
        "for each in pkgutil.iter_modules(kit.__path__):"
        " importlib.import_module('stub_server.testing.' + each.name)\n"
    )
    program += "print(*{name.partition('.')[0] for name in {*sys.modules} - before})"
    imported = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    ).stdout.split()
    owners = packages_distributions()
    known = needed("pytest", "httpx2", *CODECS)
    foreign = {
        name
        for name in imported
        if name in owners and known.isdisjoint(map(str.lower, owners[name]))
    }
    assert {"stub_server"} == foreign


def test_the_server_starts_whatever_directory_and_variables_tests_have(tmp_path: Path) -> None:
    """Modules of a project that are named as those of the library, and Kubernetes' STUB_PORT."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "connexion.py").write_text("raise ImportError")
    for name in ("calendar", "email", "token", "types"):
        (tmp_path / f"{name}.py").write_text("raise ImportError")
    (tmp_path / "test_it.py").write_text(SEEDED)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    hostile = {
        "STUB_SEED": "7",
        "STUB_PORT": "tcp://10.0.0.1:80",
        "PYTHONPATH": str(elsewhere),
        "PYTHONWARNINGS": "error",
    }
    command = [sys.executable, "-P", "-m", "pytest", *PLAIN, "--import-mode", "importlib"]
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | hostile,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert 0 == ended.returncode, ended.stdout + ended.stderr


def test_the_server_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(ENDLESS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", *PLAIN]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        address = tmp_path / "url"
        assert within(60, address.exists)
        process.kill()
    assert within(4, lambda: not answers(address.read_text()))


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    ended = run(tmp_path, THREE_LINES, ini="sandbox_args = --scenario nothing\n")
    assert 1 == ended.returncode
    assert "The server did not start" in ended.stdout
    assert "nothing" in ended.stdout


def test_misuse_is_said_in_a_sentence(tmp_path: Path) -> None:
    ended = run(tmp_path, MISUSED, "--tb=short")
    assert 1 == ended.returncode, ended.stdout
    for sentence in (
        '@pytest.mark.sandbox takes keywords, such as scenario="empty"',
        "senario",
        'now: "yesterday" is not a date-time',
        "No order.payed arrived in 0 s, but: nothing.",
        'This is not an order, as it has no id: {"detail": "refused"}',
    ):
        assert sentence in ended.stdout
    assert 3 <= ended.stdout.count("[Errno 111] Connection refused")
    assert "stub_server/testing" not in ended.stdout


def test_a_failed_test_shows_its_own_sandboxes(tmp_path: Path) -> None:
    ended = run(tmp_path, OF_ONES_OWN)
    assert 1 == ended.returncode, ended.stdout
    assert "/_sandbox/faults answered 422" in ended.stdout
    assert "/v2/nowhere" not in ended.stdout


@pytest.mark.night
def test_workers_of_xdist_have_a_server_each(tmp_path: Path) -> None:
    ended = run(tmp_path, MANY, "-n", "2")
    assert 0 == ended.returncode, ended.stdout
    assert "12 passed" in ended.stdout


def test_a_running_server_is_used_and_left_as_it_was(
    live: Live, credentials: Json, tmp_path: Path
) -> None:
    ended = run(tmp_path, MANY, "-n", "2", "--sandbox-url", live.url)
    assert 0 == ended.returncode, ended.stdout
    names = [sandbox["name"] for sandbox in _sandboxes(live)]
    assert [] == [name for name in names if name.startswith("gw") and "test-alone" in name]


def _sandboxes(live: Live) -> list[Json]:
    import httpx2

    response = httpx2.get(f"{live.url}/_sandbox/sandboxes?limit=100", verify=NO_TLS)
    return list_of(done(response), "sandboxes")
