"""Files that a user gives: what cannot be used is refused in one line, and nothing
hangs or grows.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from stub_server.contract import bundle
from stub_server.contract.source import ContractError

from ..support.contract import OPENAPI
from ..support.forked import run

pytestmark = [pytest.mark.check, pytest.mark.turn]

HEAD = 'overlay: 1.0.0\ninfo: { title: x, version: "1" }\nactions:\n'
SELF = (
    HEAD
    + "  - target: $.components.schemas\n    update: { Loop: { $ref: '#/components/schemas/Loop'"
    " } }\n"
)
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LONG = f"x: [&a {'x' * 100_000}{', *a' * 20_000}]\n"
REPEATED = (
    "merchant: { name: A, city: B }\nrecords: { customers: [ &a { repeat: x, length: 1.0e+5 }"
)
REPEATED += ", *a" * 50_000 + " ] }\n"
WIDE = "merchant: { name: A, city: B }\nprojects:\n" + "- { x: 1 }\n" * 60_000
TAGS = "%TAG !1a! b\n" * 120_000 + "---\nmerchant: { name: A, city: B }\n"
BASE_60 = f"merchant: {{ name: A, city: B }}\norders: !!int ' {'0:' * 300_000}5'\n"
DENSE = "- - - - - - - - x\n" * 500_000
GROWING = HEAD + "  - { target: $.x-more, copy: $.components }\n".join(
    ["  - { target: $, update: { x-more: {} } }\n", "", "", *[""] * 80]
).replace("$.x-more, copy: $.components", "$.components.schemas, copy: $.components")

PART_OF_ITSELF = (
    HEAD + "  - target: $.components.schemas.CustomerCreate\n"
    "    update: { allOf: [{ $ref: '#/components/schemas/CustomerCreate' }] }\n"
)


def checked(path: Path) -> subprocess.CompletedProcess[str]:
    """`stub-server check --overlay FILE`, in a process of its own."""
    command = [sys.executable, "-m", "stub_server", "check", "--overlay", str(path)]
    return run(command, timeout=60)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 200_000, ":1: is nested deeper than 100 levels"),
        (
            "a:\n" + "".join(f"{'  ' * depth}- a:\n" for depth in range(1, 3_000)),
            ": is nested deeper than 100 levels",
        ),
        (BOMB, ": has more than 200,000 values"),
        ("a: &a [*a]\n", ": has more than 200,000 values, those behind aliases included"),
        ("a: *b\n", ":1: "),
        ("x" * (10 * 1024 * 1024 + 1), ": is larger than 10 MB, the most that is read"),
        (SELF, ": $.components.schemas.Loop: #/components/schemas/Loop leads back to itself"),
        (GROWING, ": the actions write more than 200,000 values"),
        (
            HEAD + "  - { target: $.info, update: { x-size: 99999999999999999999 } }\n",
            ": cannot be written as JSON: Integer exceeds 64-bit range",
        ),
        (PART_OF_ITSELF, ": $.components.schemas: a schema is part of itself, by allOf or items"),
        (HEAD + "  - target: $" + "[?@" * 400 + "\n    remove: true\n", ":4: "),
        (
            HEAD + '  - { target: "$.x\\e]0;mine\\a\\N", remove: true }\n',
            "$.x\\u001b]0;mine\\u0007",
        ),
    ],
    ids=[
        "deep",
        "deep-block",
        "bomb",
        "recursive",
        "unknown-alias",
        "large",
        "self",
        "growing",
        "number",
        "part-of-itself",
        "path",
        "cursor",
    ],
)
def test_a_file_that_would_hurt_is_refused_in_one_line(
    tmp_path: Path, text: str, reason: str
) -> None:
    file = tmp_path / "overlay.yaml"
    file.write_text(text, encoding="utf-8")
    result = checked(file)
    assert 1 == result.returncode
    assert "" == result.stdout
    assert [line for line in result.stderr.splitlines() if line] == [result.stderr.strip()], (
        result.stderr[-2000:]
    )
    assert str(file) in result.stderr
    assert reason in result.stderr


def started(path: Path) -> subprocess.CompletedProcess[str]:
    """`stub-server serve --scenario FILE`, in a process of its own that may take two gigabytes and
    half a minute.
    """
    command = [sys.executable, "-m", "stub_server", "serve", "--port", "0", "--scenario", str(path)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
    )


@pytest.mark.promise("user-files")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 200_000, ":1: is nested deeper than 100 levels"),
        (BOMB, ": has more than 200,000 values"),
        (LONG, ": has more than 10,485,760 characters"),
        (REPEATED, ":1: (root): writes out more than 10,485,760 characters"),
        (TAGS, ": has the directive %TAG, which is not read here"),
        (BASE_60, ":2: has a tag, which is not read here: tag:yaml.org,2002:int"),
        (DENSE, ":50000: has more than 200,000 values"),
        (WIDE, ":1: (root): is no Scenario, and has more than 20,000 values"),
        ("x" * (10 * 1024 * 1024 + 1), ": is larger than 10 MB, the most that is read"),
        (
            "merchant: { name: A, city: B }\nscale: 1000\ncustomers: 100000\n",
            ":3: customers: times scale is 100000000; ",
        ),
    ],
    ids=["deep", "bomb", "long", "repeated", "tags", "base-60", "dense", "wide", "large", "crowd"],
)
def test_a_scenario_that_would_hurt_is_refused_in_one_line(
    tmp_path: Path, text: str, reason: str
) -> None:
    """It ended the process by a signal, or took all memory."""
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    result = started(file)
    assert (2, f"Error: mine.yaml{reason}") == (
        result.returncode,
        result.stderr[: len(reason) + 16],
    )
    assert 1 == len(result.stderr.strip().splitlines())


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """A FIFO that nobody writes to, and a device without an end."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/zero")):
        with pytest.raises(ContractError, match=f"{path}: is not a regular file"):
            bundle.contracts(OPENAPI, [path])
