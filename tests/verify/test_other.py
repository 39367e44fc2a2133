"""What verify says of a backend that somebody else wrote. Each divergence was judged by hand, as true or assumed."""

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..support.contract import document
from ..support.forked import run
from ..support.make import Json
from .other import TOKEN, application, server
from .runs import LONGEST, ROOT

pytestmark = pytest.mark.check

SERVED = (
    "listApiKeys createApiKey listCustomers createCustomer getCustomer updateCustomer createPixOrder getOrder"
    " listProjects createProject updateProject"
)
LISTS = "listApiKeys listCustomers listProjects"
WRITES = "createApiKey createCustomer updateCustomer createProject updateProject"
MISSING = " ".join(name for name in document().operations if name not in SERVED.split())

# By class and operations, how many causes there are.
READS = {
    # The backend departs from the source document: a document and its type are texts, not null.
    ("schema", "listCustomers getCustomer"): 2,
    # The source document is silent, and the contract assumes.
    ("laxer", LISTS): 1,
    ("filter", "listCustomers"): 1,
    ("error-code", "listApiKeys listCustomers getCustomer getOrder listProjects"): 1,
    ("schema", "listApiKeys"): 1,
    ("schema", "listCustomers"): 1,
    ("schema", "getCustomer"): 1,
    ("schema", "listProjects"): 1,
    ("schema", LISTS): 1,
    ("undocumented-field", LISTS): 1,
    ("missing-header", "listApiKeys listCustomers getCustomer getOrder listProjects"): 1,
}
BOTH = {
    ("auth", "createApiKey"): 1,
    ("stricter", "createProject"): 1,
    ("stricter", "updateProject"): 1,
    ("filter", "listApiKeys"): 1,
    ("filter", "listCustomers"): 1,
    ("filter", "listProjects"): 1,
    ("uniqueness", "createCustomer"): 1,
    ("uniqueness", "updateCustomer"): 1,
    ("uniqueness", "createProject"): 1,
    ("uniqueness", "updateProject"): 1,
    ("laxer", LISTS): 1,
    ("idempotency", "createApiKey createCustomer createProject"): 1,
    ("value", "listApiKeys createApiKey"): 2,
    ("value", "listCustomers createCustomer getCustomer updateCustomer"): 1,
    ("value", "getCustomer updateCustomer"): 1,
    ("value", "listProjects createProject updateProject"): 2,
    ("wrong-status", f"{WRITES} createPixOrder"): 1,
    ("error-code", SERVED): 1,
    ("schema", "listApiKeys"): 1,
    ("schema", "listCustomers"): 2,
    ("schema", "getCustomer"): 1,
    ("schema", "listProjects"): 1,
    ("schema", LISTS): 1,
    ("undocumented-field", LISTS): 1,
    ("undocumented-field", WRITES): 1,
    ("missing-header", SERVED): 1,
}


@contextmanager
def serving() -> Iterator[str]:
    listening = server(0)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def told(url: str, folder: Path, *flags: str) -> list[Json]:
    file = folder / "report.json"
    command = [sys.executable, "-m", "stub_server", "verify", url, "--token", TOKEN, f"--report=json={file}"]
    command += ["--budget", str(LONGEST), *flags]
    ran = run(command, cwd=ROOT, timeout=LONGEST + 60)
    assert ran.returncode == 1, ran.stderr
    assert not any(value in ran.stdout + file.read_text() for value in ("Ana Souza", "bruno@example.com"))
    divergences: list[Json] = json.loads(file.read_text())["divergences"]
    return divergences


def counted(divergences: list[Json]) -> dict[tuple[str, str], int]:
    """By class and operations, in the contract's order."""
    order = list(document().operations)
    return Counter((each["class"], " ".join(sorted(each["operations"], key=order.index))) for each in divergences)


def ordered(expected: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    order = list(document().operations)
    return {
        (kind, " ".join(sorted(names.split(), key=order.index))): count for (kind, names), count in expected.items()
    }


def test_the_backend_serves_what_the_test_says() -> None:
    rules = [str(rule) for rule in application().url_map.iter_rules() if not str(rule).startswith("/static")]
    assert len(SERVED.split()) == len(rules)


@pytest.mark.night
def test_reads_say_what_was_judged(tmp_path: Path) -> None:
    with serving() as url:
        found = counted(told(url, tmp_path))
    missing = [name for name in MISSING.split() if document().operations[name].method == "GET"]
    assert 1 == found.pop(("missing-operation", " ".join(missing)))
    found.pop(("filter", "listProjects"), None)  # shows if its projects are not of one millisecond
    assert ordered(READS) == found


@pytest.mark.night
def test_writes_say_what_was_judged(tmp_path: Path) -> None:
    with serving() as url:
        divergences = told(url, tmp_path, "--write", "--charges")
    found = counted(divergences)
    assert 1 == found.pop(("missing-operation", MISSING))
    # It checks few bodies: each kind of check is told once.
    checks = [each for each in divergences if each["class"] == "laxer" and each["operationId"] not in LISTS]
    assert len(checks) == len({each["title"].partition(": ")[2] for each in checks}) <= 12
    for phrase in ("a member that is not known", "null", "characters"):
        [one] = [each for each in checks if f"{phrase}: answered" in each["title"]]
        assert 5 == len(one["operations"]), phrase
    others = {key: count for key, count in found.items() if key[0] != "laxer" or key[1] == LISTS}
    assert ordered(BOTH) == others
