"""Flags of the server are named to those who can set them: not by answers of the API, but
by explanations.
"""

import httpx2
import pytest

from ..support.make import Json, customer_body, done


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({"document": "11144477736"}, ["--check-digits"]),
        ({"colour": "red"}, ["--overlay", "--unknown-fields"]),
    ],
)
def test_only_the_explanation_names_flags(
    api: httpx2.Client, control: httpx2.Client, changes: Json, flags: list[str]
) -> None:
    refusal = api.post("/v2/customers", json=customer_body(**changes))
    assert (422, False) == (refusal.status_code, "--" in refusal.text)
    shown = done(control.get(f"/requests/{refusal.json()['request_id']}"))["request"]["explanation"]
    assert [flag for flag in flags if flag in shown["summary"]] == flags


def test_a_foreign_host_is_told_no_flags(live_host: str, control: httpx2.Client) -> None:
    refusal = httpx2.get(f"{live_host}/v2/customers", headers={"Host": "elsewhere.example"})
    assert (403, False) == (refusal.status_code, "--" in refusal.text)
    rule = done(control.get(f"{live_host}/_sandbox/requests/{refusal.json()['request_id']}"))[
        "request"
    ]
    assert "--allow-host" in rule["explanation"]["rule"]["text"]


@pytest.fixture
def live_host(control: httpx2.Client) -> str:
    url = httpx2.URL(str(control.base_url))
    return f"{url.scheme}://{url.host}:{url.port}"
