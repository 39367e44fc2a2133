"""Servers with other settings join a store: the banner has what holds, and says what differs."""

from contextlib import ExitStack

import pytest

from ..support.postgres import Postgres
from ..support.processes import Process
from ..support.refusal import says
from .conftest import key_opens

pytestmark = pytest.mark.check
NOW = ("--now", "2026-11-20T14:32:05.123Z")


def _check_key(server: Process) -> None:
    """The key of the banner opens the sandbox, and so does the token of the command
    that it names.
    """
    key_opens(server)
    with server.api() as api:
        assert 200 == api.get("/v2/customers").status_code


def _warnings(server: Process) -> list[str]:
    return [
        line.split("warning     ", 1)[1]
        for line in server.banner.splitlines()
        if "warning     " in line
    ]


def test_a_server_with_other_settings_says_what_holds_and_what_differs(postgres: Postgres) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        first = stack.enter_context(
            Process(
                "--store", url, *NOW, "--seed", "11", "--scenario", "past_due", "--auth", "lenient"
            )
        )
        assert [] == _warnings(first)
        other = stack.enter_context(
            Process(
                "--store",
                url,
                *NOW,
                "--seed",
                "7",
                "--rate-limit",
                "100000/60s",
                "--check-digits",
                "off",
            )
        )
        assert first.fact("API key") == other.fact("API key")
        assert other.fact("data").startswith("scenario past_due, seed 11, "), other.banner
        for server in (first, other):
            _check_key(server)
        told = _warnings(other)
        assert 5 == len(told), told
        assert says(told[0], "--seed 7", "seed 11")
        for flag, here, there in (
            ("--scenario", "default", "past_due"), ("--auth", "strict", "lenient"), ("--check-digits", "off", "on"),
            ("--rate-limit", "100000/60s", "not set"),
        ):  # fmt: skip
            (line,) = [line for line in told if line.startswith(flag + " ")]
            assert says(line, f"is {here} here", f"{there} at {first.url}"), line
        first.stop()
        _check_key(other)  # which has taken the sandbox over
        again = stack.enter_context(
            Process("--store", url, *NOW, "--rate-limit", "100000/60s", "--check-digits", "off")
        )
        assert [] == _warnings(again)
