"""`stub-server requests`: the journal listed, shown, exported, verified and forgotten
from the shell.
"""

import json
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from ..support.command import asked, run
from ..support.explained import pasted
from ..support.make import Maker
from ..support.refusal import says

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def test_requests_are_listed_newest_first(to: list[str], api: httpx2.Client) -> None:
    refused = api.get(f"/v2/orders/{UNKNOWN}")
    accepted = api.get("/v2/plans")
    said = run("requests", "list", *to)
    assert 0 == said.exit_code, said.output
    head, *rows = [line.split() for line in said.output.splitlines()]
    assert ["ID", "AT", "METHOD", "STATUS", "CODE", "OPERATIONID", "PATH"] == head
    assert [
        [accepted.headers["x-request-id"], "GET", "200", "-", "listPlans", "/v2/plans"],
        [
            refused.headers["x-request-id"],
            "GET",
            "404",
            "not_found",
            "getOrder",
            f"/v2/orders/{UNKNOWN}",
        ],
    ] == [[row[0], *row[2:]] for row in rows]
    assert ["listPlans"] == [
        row["operationId"] for row in asked("requests", "list", "--limit", "1", *to)["requests"]
    ]


def test_a_request_is_shown_whole_and_can_be_sent_again(
    to: list[str], make_customer: Maker, tmp_path: Path
) -> None:
    made = make_customer(name="Ana Souza")
    shown = asked("requests", "show", "last", *to)["request"]
    assert ("createCustomer", 201, made["id"]) == (
        shown["operationId"],
        shown["status"],
        shown["response"]["body"]["customer"]["id"],
    )
    said = run("requests", "show", shown["id"], *to)
    assert 0 == said.exit_code, said.output
    lines = said.output.splitlines()
    assert f"id: {shown['id']}" == lines[0]
    assert {"method: POST", "path: /v2/customers", "status: 201", f"- {shown['events'][0]}"} <= {
        *lines
    }
    assert "    name: Ana Souza" in lines
    assert "    authorization: '[redacted]'" in lines
    assert [409] == pasted(lines[-1], tmp_path)


@pytest.mark.promise("no-escape-in-lists")
@pytest.mark.promise("no-escape-in-json")
def test_json_cannot_move_the_cursor_and_says_the_same(to: list[str], api: httpx2.Client) -> None:
    """JSON escapes what comes before the space alone:

    U+009B begins a command too, and U+202E turns text round.
    """
    title = "\x9b2J\x7f\u202e\U0001f389\U000e0001"
    api.post("/v2/customers", json={"name": title})
    api.get(f"/v2/{quote(title)}")
    shown = asked("requests", "show", "last", *to)["request"]
    assert f"/v2/{title}" == shown["path"]
    for words in (("list",), ("show", "last"), ("list", "--json"), ("show", "last", "--json")):
        said = run("requests", *words, *to).output
        as_text = "\\u009b2J\\u007f\\u202e\U0001f389"
        as_json = "\\u009b2J\\u007f\\u202e\\ud83c\\udf89"
        shown = {("list",): as_text, ("show", "last"): "\\x9B2J\\x7F"}.get(words, as_json)
        assert shown in said
        assert all(sign.isprintable() for sign in said.replace("\n", ""))


@pytest.mark.parametrize("way", ["argument", "file", "stdin"])
def test_what_holds_exits_0(to: list[str], make_customer: Maker, way: str, tmp_path: Path) -> None:
    make_customer()
    expected = json.dumps({"request": {"operationId": "createCustomer"}, "times": {"exactly": 1}})
    file = tmp_path / "expected.json"
    file.write_text(expected)
    argument = {"argument": expected, "file": f"@{file}", "stdin": "-"}[way]
    said = run("requests", "verify", argument, *to, given=expected)
    assert (0, True) == (said.exit_code, says(said.output, "matched: 1", "exactly: 1"))


def test_what_does_not_hold_exits_1_with_the_nearest_misses(
    to: list[str], make_customer: Maker
) -> None:
    make_customer(name="Ana")
    ident = asked("requests", "show", "last", *to)["request"]["id"]
    expected = json.dumps(
        {"request": {"operationId": "createCustomer", "body": {"name": "Bia", "notes": None}}}
    )
    said = run("requests", "verify", expected, *to)
    assert 1 == said.exit_code
    assert says(
        said.output, "ok: false", "at_least: 1", f"- id: {ident}", "request.body.name", "Bia", "Ana"
    )
    as_json = run("requests", "verify", expected, "--json", *to)
    report = json.loads(as_json.stdout)
    assert (1, False, [ident]) == (
        as_json.exit_code,
        report["ok"],
        [miss["id"] for miss in report["nearest"]],
    )


def test_what_the_command_sent_is_counted_only_if_asked_for(
    to: list[str], api: httpx2.Client
) -> None:
    """Else a look at the orders would change what tests expect, and hide the
    application's own last request.
    """
    own = api.get("/v2/plans").headers["x-request-id"]
    refused = api.get(f"/v2/orders/{UNKNOWN}").headers["x-request-id"]
    assert 0 == run("orders", "list", *to).exit_code
    assert 1 == run("orders", "list", "--status", "nope", *to).exit_code
    assert 1 == run("pay", UNKNOWN, *to).exit_code
    assert [refused, own] == [
        row["id"] for row in asked("requests", "list", "--control", *to)["requests"]
    ]
    assert refused == asked("requests", "show", "last", *to)["request"]["id"]
    assert refused in run("explain", "last", *to).output
    none = {"request": {"operationId": "listOrders"}, "times": {"exactly": 0}}
    never_paid = {"request": {"operationId": "payOrder"}, "times": {"exactly": 0}}
    assert [0, 0] == [
        run("requests", "verify", json.dumps(each), *to).exit_code for each in (none, never_paid)
    ]
    counted = [
        run("requests", "verify", json.dumps(each | {"commands": True}), *to)
        for each in (none, never_paid)
    ]
    assert [True, True] == [
        says(said.output, f"matched: {n}") for said, n in zip(counted, (2, 1), strict=True)
    ]
    listed = asked("requests", "list", "--control", "--commands", *to)["requests"]
    by_command = [row["operationId"] for row in listed if row["by_command"]]
    assert {"listOrders", "payOrder", "verifyRequests"} == {*by_command}
    assert (
        "listOrders"
        == asked("requests", "show", "last", "--commands", *to)["request"]["operationId"]
    )
