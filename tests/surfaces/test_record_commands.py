"""`stub-server record` and `replay`: what they write and print, and how they exit."""

import json
import re
from pathlib import Path

import httpx2
import pytest

from stub_server.settings import Settings

from ..support.command import run
from ..support.files import changed, lines, sealed
from ..support.live import NO_TLS, running
from ..support.make import Maker
from ..support.refusal import says

pytestmark = pytest.mark.check


def test_what_was_recorded_is_replayed_without_a_server(
    to: list[str], make_customer: Maker, api: httpx2.Client, tmp_path: Path
) -> None:
    make_customer()
    assert 404 == api.get("/nowhere").status_code
    file = tmp_path / "bug.stub"
    said = run("record", "-o", str(file), *to)
    assert 0 == said.exit_code
    assert says(said.output, file, to[-1], f"{file.stat().st_size:,} bytes")
    said = run("replay", str(file))
    assert (0, True) == (said.exit_code, says(said.output, "ok: true", "requests: 2", "same: 2"))
    said = run("replay", "-", "--json", given=file.read_bytes())
    expected = {
        "ok": True,
        "requests": 2,
        "same": 2,
        "aside": 0,
        "aside_by_reason": {},
        "unsent": 0,
    }
    assert expected | {"contract": None, "differing": {}, "diffs": []} == json.loads(said.output)


def test_all_differences_are_listed_and_the_first_shown_as_diffs(
    to: list[str], make_customer: Maker, api: httpx2.Client, tmp_path: Path
) -> None:
    make_customer()
    for _ in range(6):
        assert 404 == api.get("/nowhere").status_code
    file = tmp_path / "bug.stub"
    assert 0 == run("record", "-o", str(file), *to).exit_code
    recorded = lines(file.read_bytes())
    requests = [body for kind, body in recorded if kind == "request"]
    for request in requests:
        request["status"] = 418
    file.write_bytes(sealed(recorded))
    idents = [request["id"] for request in requests]
    said = run("replay", str(file))
    assert 1 == said.exit_code
    report, diff, *others = said.output.split("\n\n")
    assert report.startswith("ok: false\nrequests: 7\nsame: 0\n")
    assert [f"- {ident}" for ident in idents] == re.findall("- req_[0-9a-f]+", report)
    assert f"differing:\n  createCustomer:\n  - {idents[0]}\n  GET /nowhere:\n" in report
    assert [
        f"POST /v2/customers ({idents[0]})",
        "--- recorded",
        "+++ replayed",
    ] == diff.splitlines()[:3]
    assert {"-status 418", "+status 201"} <= {*diff.splitlines()}
    assert [f"GET /nowhere ({ident})" for ident in idents[1:5]] == [
        each.splitlines()[0] for each in others
    ]


@pytest.mark.promise("no-escape-in-replay")
def test_what_a_recording_says_cannot_move_the_cursor(
    to: list[str], make_customer: Maker, tmp_path: Path
) -> None:
    """Neither a path, an answer or a reason that the file is refused for."""
    make_customer()
    file = tmp_path / "bug.stub"
    assert 0 == run("record", "-o", str(file), *to).exit_code
    sound = file.read_bytes()
    title = "\x1b]0;mine\x07\x9b"
    file.write_bytes(
        changed(sound, "request", lambda request: request.update(path="/" + title, answer=title))
    )
    said = run("replay", str(file))
    assert (1, True) == (
        said.exit_code,
        r"/\u001b]0;mine\u0007\u009b (req_" in said.output,
    ), said.output
    assert "-\\u001b]0;mine\\u0007\\u009b\n" in said.output
    as_json = run("replay", "--json", str(file))
    assert f"-{title}" in json.loads(as_json.output)["diffs"][0]["diff"]
    said.output_bytes += as_json.output_bytes
    spoilt = changed(sound, "request", lambda request: request.update({title: 1}))
    for bad in (
        spoilt,
        changed(sound, "header", lambda header: header.update(version=99, server=title)),
    ):
        file.write_bytes(bad)
        refused = run("replay", str(file))
        assert (2, True) == (refused.exit_code, refused.output.startswith("Error: The file "))
        said.output_bytes += refused.output_bytes
    assert all(sign.isprintable() for sign in said.output_bytes.decode().replace("\n", ""))


def test_a_recording_is_served_and_rewound_to_a_request(
    to: list[str], make_customer: Maker, tmp_path: Path
) -> None:
    made = [make_customer()["id"] for _ in range(2)]
    file = tmp_path / "bug.stub"
    assert 0 == run("record", "-o", str(file), *to).exit_code
    with running(Settings(port=0, log="quiet", restore=file)) as served:
        own = ("--server", served.url)
        newest = json.loads(run("requests", "list", "--json", *own).output)["requests"][0]
        assert "createCustomer" == newest["operationId"]
        assert 0 == run("rewind", "--to-request", newest["id"], *own).exit_code
        jwt = httpx2.get(f"{served.url}/_sandbox/credentials", verify=NO_TLS).json()["jwt"]
        headers = {"Authorization": f"Bearer {jwt}"}
        found = [
            httpx2.get(
                f"{served.url}/v2/customers/{ident}", headers=headers, verify=NO_TLS
            ).status_code
            for ident in made
        ]
    assert [200, 404] == found
