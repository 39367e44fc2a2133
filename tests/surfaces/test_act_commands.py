"""`stub-server pay`, `expire`, `fail`, `refund`, `clock`, `orders`, `wait`."""

import os
import socket
import subprocess
import sys

import pytest

from ..support.command import asked, done, run
from ..support.live import FROZEN, running
from ..support.make import Maker
from ..support.refusal import says


def test_orders_are_paid_refunded_failed_and_expired(to: list[str], make_order: Maker) -> None:
    first, second, third = (make_order() for _ in range(3))
    assert f"{first['code']} is paid.\n" == done("pay", first["id"], *to)
    part = asked("refund", first["id"], "--amount", "1.5", *to)["order"]
    assert "paid" == part["status"]
    assert f"{first['code']} is refunded.\n" == done("refund", first["id"], *to)
    failed = asked("fail", second["id"], "--code", "payer_limit_exceeded", *to)["order"]
    assert ("failed", "payer_limit_exceeded") == (
        failed["status"],
        failed["last_transaction"]["failure_code"],
    )
    assert f"{third['code']} is expired.\n" == done("expire", third["id"], *to)
    head, *listed = done("orders", "list", *to).splitlines()
    assert ["ID", "CODE", "STATUS", "TOTALAMOUNT", "PAYMENTMETHOD", "CUSTOMER.NAME"] == head.split()
    assert {third["id"], second["id"], first["id"]} == {line.split()[0] for line in listed[:3]}
    assert f"{first['totalAmount']:.2f}" == listed[2].split()[3]
    assert {"refunded"} == {
        order["status"] for order in asked("orders", "list", "--status", "refunded", *to)["orders"]
    }
    make_order(customer=first["customer"] | {"name": "Ana\nLuz"})
    assert r"Ana\u000aLuz" in done("orders", "list", *to)  # a name makes no row of its own


@pytest.mark.parametrize(
    ("span", "shown"),
    [
        ("4mo", "2027-03-20T14:32:05.123Z"),
        ("1d12h", "2026-11-22T02:32:05.123Z"),
        ("2026-11-21T00:00:00Z", "2026-11-21T00:00:00.000Z"),
    ],
)
def test_the_clock_is_shown_and_advanced(to: list[str], span: str, shown: str) -> None:
    assert says(done("clock", "show", *to), "2026-11-20T14:32:05.123Z")
    assert says(done("clock", "advance", span, *to), shown)
    assert shown == asked("clock", "show", *to)["now"]


@pytest.mark.check
def test_a_server_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    late = run("wait", "--server", f"http://127.0.0.1:{port}", "--timeout", "0.3")
    assert 2 == late.exit_code
    with running(FROZEN) as live:
        assert f"{live.url} is ready.\n" == done("wait", "--server", live.url)


def test_the_clock_is_set_stopped_and_started(to: list[str]) -> None:
    set_to = done("clock", "set", "2027-01-01T00:00:00Z", *to)
    assert "The clock shows 2027-01-01T00:00:00.000Z.\n" == set_to
    assert not asked("clock", "set", "running", *to)["frozen"]
    assert asked("clock", "set", "frozen", *to)["frozen"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("stub-server clo", "plain,clock"),
        ("stub-server clock s", "plain,set\nplain,show"),
        ("stub-server ", "plain,verify"),
    ],
)
def test_a_shell_completes_verbs(typed: str, found: str) -> None:
    """As the page of commands sets it up."""
    asks = {
        "_STUB_SERVER_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }
    command = [sys.executable, "-m", "stub_server"]
    ran = subprocess.run(command, env=os.environ | asks, capture_output=True, text=True, timeout=60)
    assert found in ran.stdout
