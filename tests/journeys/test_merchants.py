"""The merchants of a sandbox: made by the control surface, and never more than fit."""

from uuid import uuid4

import httpx2
import pytest

from stub_server.core.clock import parse_iso
from stub_server.engine.tables.store import MOST_MERCHANTS

from ..support import forge, refusal
from ..support.live import NO_TLS, Live
from ..support.make import created, make_order, make_plan
from ..support.wire import Door
from .steps import refused


@pytest.mark.promise("merchants")
def test_a_sandbox_has_a_hundred_merchants_and_says_so_to_the_next(
    sandbox_name: str, control: httpx2.Client, api: httpx2.Client
) -> None:
    """Twenty thousand invented ones took 845 MB, and every unknown key was looked for in
    all of them.
    """
    made = [str(uuid4()) for _ in range(MOST_MERCHANTS - 1)]
    tokens = [
        created(control.post("/tokens", json={"merchant_id": ident}))["token"] for ident in made
    ]
    answer = control.post("/tokens", json={"merchant_id": str(uuid4())})
    refused(answer, 409, "too_many_merchants")
    assert (
        f"at most {MOST_MERCHANTS} merchants. POST /s/{sandbox_name}/_sandbox/reset"
        in answer.json()["message"]
    )
    for known in (made[0], made[-1].upper()):
        assert 201 == control.post("/tokens", json={"merchant_id": known}).status_code
    assert 201 == control.post("/tokens").status_code, "the seeded one"
    last = {"Authorization": f"Bearer {tokens[-1]}"}
    assert 0 == api.get("/v2/customers", headers=last).json()["pagination"]["total"]
    assert 200 == control.post("/reset").status_code
    assert 201 == control.post("/tokens", json={"merchant_id": str(uuid4())}).status_code


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_merchant_whom_nobody_made_is_unknown(
    live: Live, sandbox_name: str, control: httpx2.Client, method: str
) -> None:
    """The secret of a default start is known to everybody: a token that somebody signed
    makes no merchant.
    """
    ident = str(uuid4())
    assert 200 == control.get("/health").status_code
    door = Door(
        live.port,
        f"/s/{sandbox_name}",
        forge.signed(live.settings, sandbox=sandbox_name, merchant_id=ident),
    )
    told = refusal.refused(
        door.ask(method, "/v2/customers", b"{}" if method == "POST" else None), 401, "invalid_token"
    )
    assert f"POST /s/{sandbox_name}/_sandbox/tokens" in told["message"]
    assert 1 == len(live.app.sandboxes.entry(sandbox_name).sandbox.stores)
    assert 201 == control.post("/tokens", json={"merchant_id": ident}).status_code
    assert 200 == door.ask("GET", "/v2/customers").status


def test_the_token_of_a_merchant_that_a_reset_has_dropped_serves_again_once_he_is_made_anew(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    body = {"merchant_id": str(uuid4())}
    headers = {"Authorization": f"Bearer {created(control.post('/tokens', json=body))['token']}"}
    assert 200 == api.get("/v2/customers", headers=headers).status_code
    assert 200 == control.post("/reset").status_code
    refused(api.get("/v2/customers", headers=headers), 401, "invalid_token")
    assert 201 == control.post("/tokens", json=body).status_code
    assert 200 == api.get("/v2/customers", headers=headers).status_code


def test_the_last_order_of_a_sandbox_is_that_of_any_merchant(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    token = created(control.post("/tokens", json={"merchant_id": str(uuid4())}))["token"]
    make_order(api)
    with httpx2.Client(
        base_url=api.base_url, headers={"Authorization": f"Bearer {token}"}, verify=NO_TLS
    ) as other:
        order = make_order(other, make_plan(other))
    named = [
        control.get(f"/orders/{name}").json()["order"]
        for name in ("last", order["code"].lower(), order["id"])
    ]
    assert {order["id"]} == {each["id"] for each in named}


def test_a_token_lasts_as_long_as_was_asked(control: httpx2.Client) -> None:
    """By the machine's clock: a token is the server's, and no part of the sandbox."""
    asked = {
        seconds: created(control.post("/tokens", json={"expires_in": seconds}))
        for seconds in (60, 86_400)
    }
    usual = created(control.post("/tokens"))
    assert [60, 86_400, 3_600] == [made["expires_in"] for made in (*asked.values(), usual)]
    short, long = (parse_iso(made["expires_at"]) for made in asked.values())
    assert 86_340_000 <= long - short < 86_400_000
