"""Settings of one sandbox, and what its customers do with their orders: state like its records."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from stub_server.domain.cpf import cpf_with_check_digits

from ..support.files import exported, imported
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, customer_body, done, make_plan, order_body
from .steps import refused

STARTED = {
    "autopay": None, "check_digits": True, "webhook_schedule": "standard", "unknown_query": "warn",
    "strict_amounts": False,
}  # fmt: skip
WRONG_CPF = "34712695800"


def control_of(live: Live, name: str) -> httpx2.Client:
    return httpx2.Client(base_url=f"{live.url}/s/{name}/_sandbox", timeout=60, verify=NO_TLS)


def settings(control: httpx2.Client) -> Json:
    return dict(done(control.get("/settings")))


def order(api: httpx2.Client, **changes: Any) -> httpx2.Response:
    """A PIX order on a new plan that is paid once."""
    plan = make_plan(api, billing_type="one_time")
    return api.post("/v2/orders/pix", json=order_body(plan["projectId"], plan["id"], **changes))


def unknown_query(api: httpx2.Client) -> tuple[int, str | None]:
    answer = api.get("/v2/orders?kind=x")
    return answer.status_code, answer.headers.get("x-sandbox-warnings")


def wrong_digits(api: httpx2.Client) -> int:
    return api.post("/v2/customers", json=customer_body(document=WRONG_CPF)).status_code


def wrong_total(api: httpx2.Client) -> tuple[int, str | None]:
    answer = order(api, totalAmount=1)
    return answer.status_code, answer.json().get("code") if answer.status_code == 409 else None


@pytest.mark.parametrize(
    ("changes", "seen", "before", "after"),
    [
        (
            {"unknown_query": "reject"},
            unknown_query,
            (200, "unknown_query_parameter:kind"),
            (422, None),
        ),
        ({"check_digits": False}, wrong_digits, 422, 201),
        ({"strict_amounts": True}, wrong_total, (201, None), (409, "amount_mismatch")),
    ],
    ids=["unknown_query", "check_digits", "strict_amounts"],
)
def test_a_setting_is_of_one_sandbox_from_the_next_request_on(
    api: httpx2.Client, control: httpx2.Client, live: Live, changes: Json, seen: Callable[[httpx2.Client], Any],
    before: Any, after: Any,
) -> None:  # fmt: skip
    assert settings(control) == STARTED
    assert before == seen(api)
    assert STARTED | changes == done(control.patch("/settings", json=changes))
    assert after == seen(api)
    assert STARTED | changes == settings(control)
    with control_of(live, "default") as other:
        assert STARTED == settings(other)
    done(control.patch("/settings", json={name: STARTED[name] for name in changes}))
    if seen is not wrong_digits:  # the customer is there by now
        assert before == seen(api)


def test_strict_amounts_take_items_that_add_up(api: httpx2.Client, control: httpx2.Client) -> None:
    done(control.patch("/settings", json={"strict_amounts": True}))
    lessons = {"description": "Aula avulsa", "quantity": 3, "amount": 12.35}
    towel = {"description": "Toalha", "quantity": 1, "amount": 12.85}
    created(order(api, items=[lessons, towel], totalAmount=49.9))


@pytest.mark.check
def test_settings_are_state(
    api: httpx2.Client, control: httpx2.Client, live: Live, sandbox_name: str
) -> None:
    """A fork, a snapshot, a file and an earlier state have their own."""
    step = done(control.get("/sandboxes/" + sandbox_name))["sandbox"]["step"]
    done(control.patch("/settings", json={"autopay": 5, "strict_amounts": True}))
    changed = STARTED | {"autopay": 5, "strict_amounts": True}
    created(control.post("/snapshots", json={"name": "strict"}))
    fork = created(control.post(f"/sandboxes/{sandbox_name}/fork", json={}))["sandbox"]["name"]
    file = exported(control)
    history = exported(control, history=True)
    done(control.post("/rewind", json={"to_step": step}))
    assert STARTED == settings(control)
    newest, *_ = done(control.get("/steps"))["steps"]
    done(control.post("/rewind", json={"to_step": newest["step"] - 1}))
    assert changed == settings(control)
    done(control.post("/rewind", json={"to_step": step}))
    done(control.post("/snapshots/strict/restore"))
    assert changed == settings(control)
    done(control.post("/reset"))
    assert STARTED == settings(control)
    for brought in (file, history):
        done(control.post("/reset"))
        imported(control, brought)
        assert changed == settings(control)
    with control_of(live, fork) as other:
        assert changed == settings(other)
        done(other.post("/reset"))
        assert STARTED == settings(other)
    live.forget(fork)


def test_a_sandbox_begins_with_settings_and_a_reset_restores_them(live: Live) -> None:
    begun = STARTED | {"autopay": 0, "unknown_query": "reject"}
    with control_of(live, "default") as server:
        body = {"name": "with-settings", "settings": {"autopay": 0, "unknown_query": "reject"}}
        created(server.post("/sandboxes", json=body))
    with control_of(live, "with-settings") as control:
        assert begun == settings(control)
        done(control.patch("/settings", json={"autopay": None}))
        done(control.post("/reset"))
        assert begun == settings(control)
        done(control.post("/reset", json={"settings": {"autopay": 7}}))
        assert begun | {"autopay": 7} == settings(control)
        done(control.post("/reset", json={"seed": 5}))
        assert begun | {"autopay": 7} == settings(control)
    live.forget("with-settings")


def test_a_reset_restores_what_the_last_reset_with_a_body_chose(control: httpx2.Client) -> None:
    start = done(control.post("/clock/advance", json={"seconds": 0}))["now"]
    done(control.post("/clock/advance", json={"days": 40}))
    assert start == done(control.post("/reset"))["now"]
    chosen = {"scenario": "empty", "seed": 7, "now": "2027-01-31T15:00:00.000Z"}
    done(control.post("/reset", json=chosen))
    done(control.patch("/clock", json={"frozen": False, "to": "2027-05-01T00:00:00Z"}))
    assert chosen == {name: done(control.post("/reset"))[name] for name in chosen}
    assert done(control.get("/clock"))["frozen"]
    assert chosen | {"seed": 8} == {
        name: done(control.post("/reset", json={"seed": 8}))[name] for name in chosen
    }


@pytest.mark.parametrize("frozen", [True, False])
def test_a_reset_goes_back_to_the_beginning_of_a_sandbox_and_of_a_fork(
    live: Live, *, frozen: bool
) -> None:
    first = {"name": "began", "scenario": "empty", "seed": 9, "now": "2027-01-31T15:00:00.000Z"}
    names = ("scenario", "seed", "now")
    with (
        control_of(live, "default") as server,
        control_of(live, "began") as origin,
        control_of(live, "left") as fork,
    ):
        created(server.post("/sandboxes", json=first))
        done(origin.post("/clock/advance", json={"days": 3}))
        moved = done(origin.patch("/clock", json={"frozen": frozen}))
        assert moved["now"] == "2027-02-03T15:00:00.000Z"
        created(server.post("/sandboxes/began/fork", json={"name": "left"}))
        done(fork.post("/clock/advance", json={"days": 30}))
        again = done(fork.post("/reset"))
        assert ("empty", 9, "2027-02-03T15:00") == (
            again["scenario"],
            again["seed"],
            again["now"][:16],
        )
        assert frozen is done(fork.get("/clock"))["frozen"]
        assert {name: first[name] for name in names} == {
            name: done(origin.post("/reset"))[name] for name in names
        }
        assert done(origin.get("/clock"))["frozen"]
    for name in ("began", "left"):
        live.forget(name)


# -- behaviour


@pytest.fixture
def buyer(api: httpx2.Client) -> Json:
    """A customer whose e-mail pays at once."""
    document = cpf_with_check_digits("345678901")
    body = customer_body(document=document, email="ana+succeed_immediately@example.com")
    return dict(created(api.post("/v2/customers", json=body))["customer"])


def bought(api: httpx2.Client, control: httpx2.Client, buyer: Json) -> tuple[str, str | None]:
    """The status of an order of his a minute later, and what its answer says of the simulation."""
    answer = order(api, customer={name: buyer[name] for name in ("name", "email", "document")})
    made = created(answer)
    done(control.post("/clock/advance", json={"minutes": 1}))
    return done(api.get(f"/v2/orders/{made['id']}"))["status"], answer.headers.get(
        "x-sandbox-simulated"
    )


def test_behaviour_goes_before_the_magic_e_mail_and_autopay(
    api: httpx2.Client, control: httpx2.Client, buyer: Json
) -> None:
    path = f"/customers/{buyer['id']}/behaviour"
    done(control.patch("/settings", json={"autopay": 1}))
    assert ("paid", "succeed_immediately") == bought(api, control, buyer)
    for payment, status in (("fails", "failed"), ("never", "pending"), ("succeeds", "paid")):
        assert {"payment": payment, "times": None} == done(
            control.patch(path, json={"payment": payment})
        )
        assert (status, f"behaviour:{payment}") == bought(api, control, buyer)
        shown = done(api.get(f"/v2/customers/{buyer['id']}"))
        assert buyer == shown.get("customer", shown)
    assert {"payment": None, "times": None} == done(control.patch(path, json={"payment": None}))
    assert ("paid", "succeed_immediately") == bought(api, control, buyer)
    done(control.patch(path, json={"payment": "fails"}))
    simulated = api.post("/v2/orders/pix", json={}, headers={"X-Sandbox-Simulate": "plan_sold_out"})
    refused(simulated, 409, "plan_sold_out")


def test_cards_follow_the_behaviour(
    api: httpx2.Client, control: httpx2.Client, buyer: Json
) -> None:
    """First orders and renewals alike; `never` leaves the order of a card open."""
    plan = make_plan(api, payment_methods=["credit_card"])
    customer = {name: buyer[name] for name in ("name", "email", "document")}

    def charged(payment: str, **more: int) -> str:
        done(
            control.patch(f"/customers/{buyer['id']}/behaviour", json={"payment": payment, **more})
        )
        body = order_body(
            plan["projectId"], plan["id"], customer=customer, paymentMethod="credit_card"
        )
        return str(created(api.post("/v2/orders", json=body))["status"])

    assert ["failed", "pending", "paid"] == [
        charged(payment) for payment in ("fails", "never", "succeeds")
    ]
    done(
        control.patch(f"/customers/{buyer['id']}/behaviour", json={"payment": "fails", "times": 1})
    )
    done(control.post("/clock/advance", json={"months": 1, "days": 2}))
    (held,) = done(api.get("/v2/subscriptions", params={"customerId": buyer["id"]}))[
        "subscriptions"
    ]
    assert "active" == held["status"]  # declined once, then charged again
