"""`stub-server faults`: rules listed, made and deleted from the shell."""

import httpx2

from ..support.command import run


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
