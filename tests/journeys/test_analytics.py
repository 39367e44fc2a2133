"""The analytics placeholder over HTTP."""

import httpx2

PROJECT = "3F2504E0-4F89-41D3-9A0C-0305E82C3301"


def test_the_query_is_echoed_in_utc(api: httpx2.Client) -> None:
    """Ids in lower case, date-times in UTC, and no metrics."""
    query = {
        "projectId": PROJECT,
        "from": "2026-01-01T00:00:00-03:00",
        "to": "2026-02-01T00:00:00Z",
    }
    response = api.get("/v2/analytics", params=query)
    assert response.status_code == 200
    assert response.json()["analytics"] == {
        "available": False,
        "filters": {
            "projectId": PROJECT.lower(),
            "from": "2026-01-01T03:00:00.000Z",
            "to": "2026-02-01T00:00:00.000Z",
        },
        "metrics": {},
        "generated_at": "2026-11-20T14:32:05.123Z",
    }


def test_what_was_not_asked_is_null(api: httpx2.Client) -> None:
    """The shape is the same without a query."""
    body = api.get("/v2/analytics").json()
    assert body["error"] is False
    assert body["analytics"]["filters"] == {"projectId": None, "from": None, "to": None}


def test_an_empty_range_is_warned_of(api: httpx2.Client) -> None:
    """As in lists."""
    since = "2026-05-02T00:00:00Z"
    until = "2026-05-01T00:00:00Z"
    for query, warned in (
        ({"from": since, "to": until}, "empty_range"),
        ({"from": until, "to": since}, None),
    ):
        answer = api.get("/v2/analytics", params=query)
        assert (200, warned) == (answer.status_code, answer.headers.get("X-Sandbox-Warnings"))
