"""`stub-server explain`: an explanation in text and JSON, and a nearest request that succeeds as it
is pasted.
"""

import json
from pathlib import Path

import httpx2

from ..support.command import run
from ..support.explained import pasted


def test_the_last_refusal_is_explained_and_its_nearest_request_succeeds(
    to: list[str], api: httpx2.Client, tmp_path: Path
) -> None:
    refusal = api.get("/v2/orders", params={"limit": "0"})
    assert 200 == api.get("/v2/orders").status_code
    said = run("explain", "last", *to)
    assert 0 == said.exit_code, said.output
    head, summary, *rest = said.output.splitlines()
    ident = refusal.headers["x-request-id"]
    assert f"GET /v2/orders was answered 422 validation_error ({ident})" == head
    assert refusal.json()["message"] == summary
    assert "- where: query.limit" in rest
    assert [200] == pasted(said.output.partition("\n\ncurl ")[2].join(("curl ", "")), tmp_path)


def test_where_another_record_would_do_it_is_named(to: list[str], api: httpx2.Client) -> None:
    (order,) = api.get("/v2/orders", params={"limit": "1"}).json()["orders"]
    api.get(f"/v2/orders/{order['id'][:-1]}{'0' if order['id'][-1] != '0' else '1'}")
    said = run("explain", "last", *to)
    assert 1 == said.exit_code
    assert f"  needed:\n  - {order['id']}\n" in said.output
    assert said.output.endswith("No request was found that succeeds.\n")


def test_a_request_is_explained_by_its_id_as_json(to: list[str], api: httpx2.Client) -> None:
    refusal = api.post("/v2/customers", json={"name": "Ana"})
    api.get("/v2/custommers")
    said = run("explain", refusal.headers["x-request-id"], "--json", *to)
    assert 0 == said.exit_code, said.output
    found = json.loads(said.output)
    assert "contract" == found["kind"]
    assert {"body.email", "body.document"} == {
        change["where"] for change in found["nearest"]["changes"]
    }


def test_a_request_that_was_accepted_is_not_explained(to: list[str], api: httpx2.Client) -> None:
    answer = api.get("/v2/plans")
    said = run("explain", answer.headers["x-request-id"], *to)
    assert (0, "GET /v2/plans was answered 200: it was accepted.\n") == (
        said.exit_code,
        said.output,
    )
    assert "null\n" == run("explain", answer.headers["x-request-id"], "--json", *to).output


def test_where_nothing_was_refused_it_exits_1(to: list[str], api: httpx2.Client) -> None:
    assert 200 == api.get("/v2/plans").status_code
    said = run("explain", "last", *to)
    assert (1, "Error: no request was refused.\n") == (
        said.exit_code,
        said.output,
    )


def test_an_unknown_request_exits_1(to: list[str]) -> None:
    assert 1 == run("explain", "req_000000000000000000000000", *to).exit_code


def test_a_server_that_is_away_exits_2() -> None:
    said = run("explain", "last", "--server", "http://127.0.0.1:9")
    assert 2 == said.exit_code
    assert "no sandbox answers at http://127.0.0.1:9" in said.output
