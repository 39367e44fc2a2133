"""`stub-server faults`: rules listed, made and deleted from the shell."""

import json

import httpx2
import pytest
from click.testing import CliRunner, Result

from stub_server.cli.command import main

from ..support.live import Live


@pytest.fixture
def to(live: Live, sandbox_name: str, control: httpx2.Client) -> list[str]:
    """The flags that name the test's sandbox, which is there."""
    assert 200 == control.get("/health").status_code
    return ["--server", live.url, "--sandbox", sandbox_name]


def faults(*args: str, given: str | None = None) -> Result:
    """What the command says and how it exits."""
    return CliRunner().invoke(main, ["faults", *args], input=given, terminal_width=80)


def test_a_preset_is_made_listed_and_deleted(to: list[str], api: httpx2.Client) -> None:
    made = faults("add", "outage", *to)
    assert (0, "fault_1 is added.\n") == (made.exit_code, made.output)
    assert 503 == api.get("/v2/plans").status_code
    listed = faults("list", *to)
    head, row = (line.split() for line in listed.output.splitlines())
    assert ["ID", "NAME", "PRESET", "ENABLED", "HITS", "SEEN"] == head
    assert ["fault_1", "outage", "True", "1", "1"] == [row[0], *row[-4:]]
    assert (0, "fault_1 is deleted.\n") == (
        (gone := faults("delete", "fault_1", *to)).exit_code,
        gone.output,
    )
    assert (0, "There are no such faults.\n") == (
        (none := faults("list", *to)).exit_code,
        none.output,
    )


@pytest.mark.parametrize("given", [None, "stdin"])
def test_a_rule_is_made_from_json(to: list[str], given: str | None) -> None:
    rule = {"name": "late hooks", "match": {"event": "order.*"}, "then": {"delay_ms": 5}}
    text = json.dumps(rule)
    made = (
        faults("add", text, "--json", *to)
        if given is None
        else faults("add", "-", "--json", *to, given=text)
    )
    assert 0 == made.exit_code, made.output
    assert rule.items() <= json.loads(made.output)["fault"].items()
    assert {"faults": [json.loads(made.output)["fault"]]} == json.loads(
        faults("list", "--json", *to).output
    )


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_rule_of_somebody_else_cannot_move_the_cursor(to: list[str], form: list[str]) -> None:
    faults(
        "add",
        json.dumps({"name": "\x9b2J", "match": {"path": "/\x85"}, "then": {"status": 500}}),
        *to,
    )
    said = faults("list", *form, *to).output
    assert "\\u009b2J" in said
    assert all(sign.isprintable() for sign in said.replace("\n", ""))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("delete", "fault_9"), "There is no fault rule of this id in the sandbox."),
        (("add", "earthquake"), "is not one of"),
        (
            ("add", '{"then": {"webhook_drop": true, "status": 503}}'),
            "Leave out what only requests have: then.status",
        ),
    ],
)
def test_what_the_sandbox_refuses_exits_1(to: list[str], args: tuple[str, ...], said: str) -> None:
    done = faults(*args, *to)
    assert 1 == done.exit_code
    assert said in done.output
