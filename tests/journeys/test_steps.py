"""The steps of a sandbox: what changed it, by what cause, newest first."""

import httpx2

from ..support.make import Json, Maker, done, list_of


def test_a_step_names_its_cause_what_it_changed_and_what_it_raised(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker
) -> None:
    assert ([], 0) == (
        done(control.get("/steps"))["steps"],
        done(control.get("/steps"))["pagination"]["total"],
    )
    made = make_customer()
    response = api.put(f"/v2/customers/{made['id']}", json={"name": "Outra"})
    updated, creation = done(control.get("/steps"))["steps"]
    assert (2, 1) == (updated["step"], creation["step"])
    cause = {
        "kind": "request",
        "id": response.headers["x-request-id"],
        "operation": "updateCustomer",
    }
    assert cause == updated["cause"]
    assert control.get("/clock").json()["now"] == updated["at"]
    assert [{"resource": "customers", "id": made["id"], "change": "updated"}] == updated["changes"]
    assert [{"resource": "customers", "id": made["id"], "change": "created"}] == creation[
        "changes"
    ][:1]
    event = done(control.get("/events", params={"type": "customer.created", "limit": 1}))["events"][
        0
    ]
    assert [{"id": event["id"], "type": "customer.created"}] == creation["events"]
    assert (0, 0) == (updated["omitted"], creation["omitted"])


def test_steps_are_found_by_table_resource_cause_and_number(
    api: httpx2.Client,
    control: httpx2.Client,
    make_customer: Maker,
    make_project: Maker,
    make_order: Maker,
) -> None:
    customer = make_customer()
    make_project()
    order = make_order()
    done(control.post(f"/orders/{order['id']}/pay"))
    done(control.post("/clock/advance", json={"days": 1}))
    api.put(f"/v2/customers/{customer['id']}", json={"name": "Outra"})

    def found(**query: object) -> list[Json]:
        asked = {name: str(value) for name, value in query.items()}
        return list_of(done(control.get("/steps", params={"limit": "100"} | asked)), "steps")

    every = found()
    assert len(every) < 100
    numbers = [step["step"] for step in every]
    assert sorted(numbers, reverse=True) == numbers
    assert ["updateCustomer", "createCustomer"] == [
        s["cause"]["operation"] for s in found(resource_id=customer["id"])
    ]
    by_table = [s for s in every if any(c["resource"] == "projects" for c in s["changes"])]
    assert by_table == found(table="projects")
    jobs = [step for step in every if step["cause"]["kind"] == "job"]
    assert jobs == found(cause="job")
    event = done(control.get("/events", params={"type": "order.paid", "resource_id": order["id"]}))[
        "events"
    ][0]
    assert ["payOrder"] == [step["cause"]["operation"] for step in found(event_id=event["id"])]
    assert [s for s in jobs if s["step"] > numbers[3]] == found(cause="job", since=numbers[3])
    assert every[:3] == found(since=numbers[3])
    page = done(control.get("/steps", params={"limit": 2, "page": 2}))
    assert every[2:4] == page["steps"]
    assert len(every) == page["pagination"]["total"]
