"""Reading the past: any GET of the API as things stood after a step or at an instant, and nothing
is changed by it.
"""

from collections.abc import Iterator

import httpx2
import pytest

from stub_server.core.clock import iso, parse_iso
from stub_server.engine import history
from stub_server.server.layers import time_travel

from ..support.contract import document
from ..support.estate import Estate
from ..support.live import NO_TLS
from ..support.make import Json, Maker, created, customer_body, done, typed
from ..support.refusal import says
from ..support.requests import OPERATIONS, path_of
from .past import step_of
from .steps import refused

READING = [name for name, operation in OPERATIONS.items() if operation.method == "GET"]


def at(when: object) -> dict[str, str]:
    """The header."""
    return {"X-Sandbox-As-Of": str(when)}


def test_every_get_of_the_api_takes_it(home: Estate) -> None:
    """The answer of now, where now is what is asked for."""
    # a step, which records what keys were used until now
    created(home.api.post("/v2/customers", json=customer_body()))
    step = done(home.control.get("/steps", params={"limit": 1}))["steps"][0]["step"]
    assert set(READING) == {o.id for o in document().operations.values() if o.method == "GET"}
    for name in READING:
        path = path_of(OPERATIONS[name], home.ids)
        now = home.api.get(path)
        then = home.api.get(path, headers=at(step))
        assert (now.status_code, now.content) == (then.status_code, then.content), name
        before = home.api.get(path, headers=at(step - 1))
        assert before.status_code in (200, 404), name


def test_an_instant_means_the_last_step_at_or_before_it(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker
) -> None:
    made = make_customer()
    first = parse_iso(control.get("/clock").json()["now"])
    done(control.post("/clock/advance", json={"seconds": 2}))
    api.put(f"/v2/customers/{made['id']}", json={"name": "Outra"})
    second = parse_iso(control.get("/clock").json()["now"])

    def name(instant: int) -> str:
        then = done(api.get(f"/v2/customers/{made['id']}", headers=at(iso(instant))))
        return typed(str, then["customer"]["name"])

    assert [made["name"], made["name"], "Outra"] == [name(t) for t in (first, second - 1, second)]
    answer = api.get("/v2/customers", headers=at(iso(second + 1)))
    assert {"X-Sandbox-As-Of": "step_not_kept"} == refused(answer, 409, "step_not_kept")


def test_the_uses_of_a_key_are_those_of_then(api: httpx2.Client, control: httpx2.Client) -> None:
    key = created(api.post("/api-keys", json={"name": "Chave", "scopes": ["customers:write"]}))[
        "api_key"
    ]
    own = {"Authorization": f"Bearer {key['private_key']}"}
    steps = []
    for _ in range(3):
        created(api.post("/v2/customers", json=customer_body(), headers=own))
        steps.append(step_of(control))
    used = [
        each["usage_count"]
        for step in steps
        for each in done(api.get("/api-keys", headers=at(step)))["api_keys"]
        if each["id"] == key["id"]
    ]
    assert [1, 2, 3] == used


@pytest.mark.promise("past-with-rights-of-today")
def test_who_may_ask_is_decided_today(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker
) -> None:
    """A key of today reads the time before it was made; one that was deleted does not read the time
    when it was not.
    """
    make_customer()
    key = created(api.post("/api-keys", json={"name": "Chave", "scopes": ["customers:read"]}))[
        "api_key"
    ]
    own = {"Authorization": f"Bearer {key['private_key']}"}
    step = step_of(control)
    assert 200 == api.get("/v2/customers", headers=own | at(0)).status_code
    refused(api.get("/v2/orders", headers=own | at(0)), 403, "insufficient_scope")
    assert 200 == api.delete(f"/api-keys/{key['id']}").status_code
    refused(api.get("/v2/customers", headers=own | at(step)), 401, "invalid_token")
    refused(
        httpx2.get(f"{api.base_url}v2/customers", headers=at(0), verify=NO_TLS),
        401,
        "missing_credentials",
    )


def test_other_methods_and_the_control_surface_do_not_take_it(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    for method in ("POST", "PUT"):
        path = (
            "/v2/customers"
            if method == "POST"
            else "/v2/customers/00000000-0000-4000-8000-000000000000"
        )
        answer = api.request(method, path, json=customer_body(), headers=at(0))
        assert {"X-Sandbox-As-Of": "as_of"} == refused(answer, 400, "malformed_request")
        assert says(answer.json()["message"], "GET")
    for path in ("/steps", "/snapshots", "/events", "/health"):
        answer = control.get(path, headers=at(0))
        assert {"X-Sandbox-As-Of": "as_of"} == refused(answer, 400, "malformed_request")
    assert 0 == step_of(control)


@pytest.mark.promise("states-as-of")
def test_states_that_were_reached_are_kept_few_and_a_reset_begins_anew(
    api: httpx2.Client,
    control: httpx2.Client,
    make_customer: Maker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[int] = []
    reach = history.state_at

    def counting(*given: object) -> Iterator[object]:
        counted.append(given[1])  # type: ignore[arg-type]  # passed on as it came
        return reach(*given)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(time_travel, "state_at", counting)
    for _ in range(6):
        make_customer()
    for number in (3, 3, 3, 2, 1, 0, 3, 4, 5):
        done(api.get("/v2/customers", headers=at(number)))
    assert [3, 2, 1, 0, 4, 5] == counted
    done(api.get("/v2/customers", headers=at(2)))
    assert [2] == counted[6:]
    done(control.post("/reset"))
    make_customer()
    body: Json = done(api.get("/v2/customers", headers=at(1)))
    assert body["customers"] == done(api.get("/v2/customers"))["customers"]
