"""`stub-server explain`: an explanation in text, and a nearest request that succeeds as it
is pasted.
"""

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
    head, summary, change, *rest = said.output.splitlines()
    assert "GET /v2/orders answered 422 validation_error" == head
    assert f"  why: {refusal.json()['message']}" == summary
    assert change.startswith("  succeeds with query.limit: ")
    assert f"request: {refusal.headers['x-request-id']}" in rest
    assert [200] == pasted(said.output.partition("\n\ncurl ")[2].join(("curl ", "")), tmp_path)


def test_where_another_record_would_do_it_is_named(to: list[str], api: httpx2.Client) -> None:
    (order,) = api.get("/v2/orders", params={"limit": "1"}).json()["orders"]
    api.get(f"/v2/orders/{order['id'][:-1]}{'0' if order['id'][-1] != '0' else '1'}")
    said = run("explain", "last", *to)
    assert 1 == said.exit_code
    assert f"  needed:\n  - {order['id']}\n" in said.output
    assert said.output.endswith("No request was found that succeeds.\n")


def test_a_request_that_was_accepted_is_not_explained(to: list[str], api: httpx2.Client) -> None:
    answer = api.get("/v2/plans")
    said = run("explain", answer.headers["x-request-id"], *to)
    assert (0, "GET /v2/plans answered 200: it was accepted.\n") == (
        said.exit_code,
        said.output,
    )
    assert "null\n" == run("explain", answer.headers["x-request-id"], "--json", *to).output
