"""`stub-server faults`: rules listed, made and deleted from the shell."""

import json

import httpx2
import pytest

from ..support.command import asked, run


def test_a_preset_is_made_listed_and_deleted(to: list[str], api: httpx2.Client) -> None:
    made = run("faults", "add", "outage", *to)
    assert (0, "fault_1 is added.\n") == (made.exit_code, made.output)
    assert 503 == api.get("/v2/plans").status_code
    listed = run("faults", "list", *to)
    head, row = (line.split() for line in listed.output.splitlines())
    assert ["ID", "NAME", "PRESET", "ENABLED", "HITS", "SEEN"] == head
    assert ["fault_1", "outage", "True", "1", "1"] == [row[0], *row[-4:]]
    assert (0, "fault_1 is deleted.\n") == (
        (gone := run("faults", "delete", "fault_1", *to)).exit_code,
        gone.output,
    )
    assert (0, "There are no such faults.\n") == (
        (none := run("faults", "list", *to)).exit_code,
        none.output,
    )


def test_a_rule_is_made_from_json(to: list[str]) -> None:
    rule = {"name": "late hooks", "match": {"event": "order.*"}, "then": {"delay_ms": 5}}
    made = asked("faults", "add", json.dumps(rule), *to)["fault"]
    assert rule.items() <= made.items()
    assert {"faults": [made]} == asked("faults", "list", *to)


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
    done = run("faults", *args, *to)
    assert 1 == done.exit_code
    assert said in done.output
