"""SECURITY.md promises nothing without a test, and its figures are those of the code."""

import re
from pathlib import Path

from stub_server.contract import source
from stub_server.engine import deliveries, kept, lists
from stub_server.engine.tables.store import MOST_MERCHANTS
from stub_server.server import server as waiting
from stub_server.server.layers.validation import DEEPEST, MOST_VALUES
from stub_server.server.protocol import LARGEST_HEAD, Limits
from stub_server.server.request import LARGEST_BODY
from stub_server.server.sandboxes import creating
from stub_server.settings import Settings
from stub_server.storage import package
from stub_server.webhooks import courier, inbox

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
# The lines of the lists, and the names before the colon of each.
LINES = re.findall(r"^- `[a-z].*: .*$", TEXT, re.MULTILINE)
PROMISES: list[tuple[str, str]] = [
    (name, line) for line in LINES for name in re.findall(r"`([^`]+)`", line.partition(": ")[0])
]
# The names in marks of tests, whatever other marks these have.
MARKED = re.compile(
    r'^@pytest\.mark\.promise\("([^"]+)"\)\n(?=(?:(?!def ).*\n)*def test_)', re.MULTILINE
).findall
MIB = 1024 * 1024


def row(name: str) -> str:
    """The line of a bound."""
    return str(dict(PROMISES)[name])


def test_each_promise_has_a_test_and_each_mark_a_promise() -> None:
    names = [name for name, _ in PROMISES]
    assert len(set(names)) == len(names) >= 30
    marked = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in MARKED(file.read_text(encoding="utf-8"))
    }
    assert set(names) == marked


def test_nothing_is_promised_but_by_a_name() -> None:
    """A sentence that says "never" or "only" promises something."""
    rest = [line for line in TEXT.splitlines() if line not in LINES]
    assert [] == [line for line in rest if re.search(r"\b(never|only)\b", line, re.IGNORECASE)]


def test_its_figures_are_those_of_the_code() -> None:
    limits = Limits()
    settings = Settings()
    figures = {
        "headers": (f"{LARGEST_HEAD // 1024} KiB", f"{limits.head} s"),
        "body": (f"{LARGEST_BODY // MIB} MiB, {limits.body} s, {DEEPEST} levels",),
        "body-values": (f"{MOST_VALUES:,}",),
        "connections": (f"`--max-connections` {settings.max_connections}",),
        "sandboxes": (f"{creating.MOST:,}",),
        "merchants": (str(MOST_MERCHANTS),),
        "steps": (
            f"{settings.history:,}",
            f"{kept.MOST_BYTES // MIB} MiB",
        ),
        "events": (f"{lists.MOST_EVENTS:,} and {lists.MOST_EVENT_BYTES // MIB} MiB",),
        "deliveries": (f"{deliveries.LOG_ROWS:,} and {deliveries.LOG_BYTES // MIB} MiB",),
        "saved-replies": (f"{lists.MOST_REPLIES:,} and {lists.MOST_REPLY_BYTES // MIB} MiB",),
        "inboxes": (
            f"{inbox.MOST_MESSAGES:,} messages and {inbox.MOST_BYTES // MIB} MiB a sandbox",
            f"of {inbox.MOST_NAMES} names",
        ),
        "journal": (
            f"{settings.journal:,} requests",
            f"{kept.MOST_BYTES // MIB} MiB a sandbox",
        ),
        "steps-requests-messages-sandboxes": (f"{kept.MOST_BYTES_IN_ALL // MIB} MiB",),
        "waiting-requests": (
            f"{waiting.OF_SANDBOX} of a sandbox, {waiting.FOR_ANYBODY} of them",
            f"{waiting.IN_ALL} or",
        ),
        "attempts-under-way": (f"{courier.OF_SANDBOX} of a sandbox, {courier.IN_ALL} in all",),
        "files": (f"{package.MOST_BYTES // MIB} MiB packed and unpacked",),
        "user-files": (f"{source.MOST_BYTES // MIB} MB, {source.DEEPEST} levels",),
    }
    assert [] == [
        (name, figure)
        for name, told in figures.items()
        for figure in told
        if figure not in row(name)
    ]
    text = (ROOT / "openapi/components/parameters.yaml").read_text(encoding="utf-8")
    (contract,) = re.findall(r"newest\s+([\d,]+) answers,\s+up\s+to\s+(\d+)\s+MiB", text)
    assert (f"{lists.MOST_REPLIES:,}", str(lists.MOST_REPLY_BYTES // MIB)) == contract
