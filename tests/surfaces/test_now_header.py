"""`X-Sandbox-Now`: every answer says what time it is in its sandbox."""

import httpx2
import pytest

from stub_server.core.clock import DAY, iso, parse_iso

from ..support.live import FROZEN, NO_TLS, Live
from ..support.make import created, order_body

NAME = "X-Sandbox-Now"


@pytest.mark.check
def test_every_answer_has_the_time_of_its_sandbox(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    now = iso(FROZEN.now or 0)
    answers = [
        api.get("/v2/customers"), api.get("/v2/customers/nobody"), api.get("/nothing"), api.post("/v2/customers"),
        api.get("/v2/customers", headers={"Authorization": "Bearer wrong"}), control.get("/clock"),
        api.get("/openapi.json"), api.get("/v2/customers", headers={"Prefer": "code=503"}),
    ]  # fmt: skip
    assert [now] * len(answers) == [answer.headers.get(NAME) for answer in answers]
    moved = control.post("/clock/advance", json={"days": 3})
    assert moved.headers[NAME] == moved.json()["now"]
    assert parse_iso(api.get("/v2/customers").headers[NAME]) == (FROZEN.now or 0) + 3 * DAY


def test_a_saved_reply_comes_with_the_time_of_today(
    api: httpx2.Client, control: httpx2.Client, credentials: dict[str, dict[str, str]]
) -> None:
    sample = credentials["sample"]
    key = {"Idempotency-Key": "cart-1"}
    plan = api.get(f"/v2/plans/{sample['planId']}").json()["plan"]
    body = order_body(sample["projectId"], plan["id"], totalAmount=plan["amount"])
    created(api.post("/v2/orders/pix", json=body, headers=key))
    control.post("/clock/advance", json={"hours": 2})
    again = created_again = api.post("/v2/orders/pix", json=body, headers=key)
    assert created_again.headers["Idempotent-Replayed"] == "true"
    assert [again.headers[NAME]] == [control.get("/clock").json()["now"]]
    assert len(again.headers.get_list(NAME)) == 1


def test_where_no_sandbox_was_chosen_there_is_no_time(live: Live) -> None:
    with httpx2.Client(base_url=live.url, verify=NO_TLS) as client:
        refused = client.get("/s/no-such/v2/customers")
        assert (refused.status_code, refused.headers.get(NAME)) == (401, None)
