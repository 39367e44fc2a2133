"""The versions of a record, and what waits for its time."""

import httpx2

from ..support.make import Json, Maker, done, list_of
from .past import rewind

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def history(control: httpx2.Client, resource: str, ident: str, **query: str) -> list[Json]:
    """The versions of a record, newest first."""
    return list_of(
        done(control.get(f"/records/{resource}/{ident}/history", params=query)), "versions"
    )


def test_a_record_has_a_version_for_each_step_that_changed_it(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker
) -> None:
    """Each with its cause and its body.

    A deleted record is found too, and a rewind makes a version.
    """
    made = make_customer(name="Ana")
    changed = api.put(f"/v2/customers/{made['id']}", json={"name": "Outra"})
    newest, first = history(control, "customers", made["id"])
    assert [(2, "updated", "Outra"), (1, "created", "Ana")] == [
        (each["step"], each["change"], each["body"]["name"]) for each in (newest, first)
    ]
    cause = {
        "kind": "request",
        "id": changed.headers["x-request-id"],
        "operation": "updateCustomer",
    }
    assert cause == newest["cause"]
    assert control.get("/clock").json()["now"] == newest["at"]
    assert history(control, "customers", made["id"].upper()) == [newest, first]
    assert history(control, "customers", made["id"], limit="1", page="2") == [first]
    rewind(control, to_step=0)
    gone, *earlier = history(control, "customers", made["id"])
    assert [newest, first] == earlier
    assert ("deleted", None, "rewindSandbox") == (
        gone["change"],
        gone["body"],
        gone["cause"]["operation"],
    )
    rewind(control, to_step=2)
    back = history(control, "customers", made["id"])[0]
    assert ("created", newest["body"]) == (back["change"], back["body"])


def test_a_seeded_record_begins_with_what_was_before_the_log(
    control: httpx2.Client, credentials: Json
) -> None:
    order = credentials["sample"]["orderId"]
    (seeded,) = history(control, "orders", order)
    assert ("earlier", None, None, None) == (
        seeded["change"],
        seeded["step"],
        seeded["at"],
        seeded["cause"],
    )
    done(control.post(f"/orders/{order}/pay"))
    paid, earlier = history(control, "orders", order)
    assert seeded == earlier
    assert (1, "updated", "paid") == (paid["step"], paid["change"], paid["body"]["status"])


def test_what_is_no_record_has_no_history(control: httpx2.Client, credentials: Json) -> None:
    order = credentials["sample"]["orderId"]
    for path in (f"orders/{UNKNOWN}", f"plans/{order}", f"events/{order}", "orders/x"):
        assert 404 == control.get(f"/records/{path}/history").status_code, path
    assert 422 == control.get(f"/records/orders/{order}/history", params={"limit": 101}).status_code


def test_what_waits_is_listed_in_the_order_of_its_time(
    control: httpx2.Client, make_order: Maker, make_customer: Maker
) -> None:
    order = make_order()
    (expiry,) = done(control.get("/timers", params={"resource_id": order["id"].upper()}))["timers"]
    assert ("order.expire", "orders", order["id"], False) == tuple(
        expiry[name] for name in ("job", "resource", "id", "held")
    )
    assert order["last_transaction"]["expires_at"] == expiry["due"]
    total = done(control.get("/clock"))["pending_timers"]
    pages = [
        done(control.get("/timers", params={"limit": 100, "page": page}))
        for page in range(1, total // 100 + 2)
    ]
    every = [timer for page in pages for timer in page["timers"]]
    assert total >= pages[0]["pagination"]["total"] == len(every)
    assert sorted(timer["due"] for timer in every) == [timer["due"] for timer in every]
    assert expiry in every
    resources = {timer["job"].partition(".")[0]: timer["resource"] for timer in every}
    assert {
        "order": "orders",
        "subscription": "subscriptions",
        "webhook": "webhook_logs",
    }.items() <= resources.items()
    assert (
        [] == done(control.get("/timers", params={"resource_id": make_customer()["id"]}))["timers"]
    )
    done(control.post(f"/orders/{order['id']}/pay"))  # which leaves nothing to expire
    assert [] == done(control.get("/timers", params={"resource_id": order["id"]}))["timers"]
    assert 422 == control.get("/timers", params={"resource_id": "x"}).status_code
