"""States that have a name: made, listed, restored, dropped; and what bounds them."""

import httpx2
import pytest

from stub_server.server.sandboxes import entry
from stub_server.storage.state import MOST_SNAPSHOTS

from ..conftest import Serve
from ..support.files import exported, lines
from ..support.live import NO_TLS
from ..support.make import Json, Maker, created, customer_body, done, object_of
from ..support.refusal import says
from .hooks import clients
from .past import everything, rewind, step_of
from .steps import refused


def snapshot(control: httpx2.Client, name: str = "clean", **more: object) -> Json:
    """A new one."""
    return object_of(created(control.post("/snapshots", json={"name": name, **more})), "snapshot")


def restore(control: httpx2.Client, name: str = "clean") -> Json:
    """Have the sandbox be as it was then."""
    return object_of(done(control.post(f"/snapshots/{name}/restore")), "sandbox")


def test_everything_reads_as_it_did_when_the_snapshot_was_made(
    api: httpx2.Client,
    control: httpx2.Client,
    make_customer: Maker,
    make_order: Maker,
    sandbox_name: str,
) -> None:
    """Also a second time, and what stood before can be had by rewinding."""
    order = make_order()
    made = created(
        control.post("/snapshots", json={"name": "clean", "description": "One open order"})
    )["snapshot"]
    sandbox = done(control.get(f"/sandboxes/{sandbox_name}"))["sandbox"]
    assert (
        "clean",
        "One open order",
        step_of(control),
        sandbox["now"],
        sandbox["records"],
    ) == tuple(made[name] for name in ("name", "description", "step", "now", "records"))
    before = everything(api, control)
    for _ in range(2):
        done(control.post(f"/orders/{order['id']}/pay"))
        done(control.post("/clock/advance", json={"days": 40}))
        make_customer()
        after = everything(api, control)
        newest = step_of(control)
        restored = restore(control)
        assert (newest + 1, made["now"], made["records"]) == tuple(
            restored[n] for n in ("step", "now", "records")
        )
        assert before == everything(api, control)
        rewind(control, to_step=newest)
        assert after == everything(api, control)
        restore(control)
        assert before == everything(api, control)
    assert [made] == done(control.get("/snapshots"))["snapshots"]
    assert 200 == control.get("/invariants").status_code


def test_it_is_kept_whatever_the_history_drops(serve: Serve) -> None:
    with clients(serve(seed=11, history=1)) as (api, control):
        snapshot(control)
        before = everything(api, control)
        for _ in range(5):
            created(api.post("/v2/customers", json=customer_body()))
        assert 5 == done(control.get("/steps"))["steps"][0]["step"]
        refused(control.post("/rewind", json={"to_step": 0}), 409, "step_not_kept")
        restore(control)
        assert before == everything(api, control)


def test_a_reset_drops_them_and_a_fork_begins_without(
    control: httpx2.Client, sandbox_name: str
) -> None:
    snapshot(control)
    fork = created(control.post(f"/sandboxes/{sandbox_name}/fork"))["sandbox"]
    own = f"{fork['base_url']}/_sandbox"
    assert [] == done(httpx2.get(f"{own}/snapshots", verify=NO_TLS))["snapshots"]
    assert 204 == control.delete(f"/sandboxes/{fork['name']}").status_code
    done(control.post("/reset"))
    refused(control.post("/snapshots/clean/restore"), 404, "snapshot_not_found")


@pytest.mark.promise("snapshots")
def test_a_sandbox_has_so_many_and_so_large(
    control: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that replaces another has the room of that one."""
    for number in range(MOST_SNAPSHOTS):
        snapshot(control, f"s{number}")
    answer = control.post("/snapshots", json={"name": "more"})
    assert {"name": "too_many_snapshots"} == refused(answer, 409, "too_many_snapshots")
    assert says(answer.json()["message"], 20)
    snapshot(control, "s0")
    for number in range(1, MOST_SNAPSHOTS):
        control.delete(f"/snapshots/s{number}")
    monkeypatch.setattr(entry, "MOST_SNAPSHOT_BYTES", 10 * 1024 * 1024)
    made = 1
    while (answer := control.post("/snapshots", json={"name": f"t{made}"})).status_code == 201:
        made += 1
    refused(answer, 409, "too_many_snapshots")
    assert says(answer.json()["message"], "10 MiB")
    assert 1 < made < MOST_SNAPSHOTS
    snapshot(control, "s0")


@pytest.mark.promise("descriptions-without-secrets")
@pytest.mark.check
@pytest.mark.parametrize("hidden", ["_", "%5F"])
def test_a_description_is_kept_without_a_key_that_somebody_pasted(
    control: httpx2.Client, credentials: Json, hidden: str
) -> None:
    """Everybody who lists them would have it, and so would a file without secrets."""
    key = credentials["private_key"].replace("_", hidden)
    token = credentials["jwt"]
    created(
        control.post(
            "/snapshots", json={"name": "clean", "description": f"São Paulo \x9b1m: {key}, {token}"}
        )
    )
    listed = control.get("/snapshots").text
    file = lines(exported(control, secrets=False))
    told = [body["description"] for kind, body in file if kind == "snapshot"]
    assert [] == [secret for secret in (key[-30:], token[-30:]) if secret in listed + str(told)]
    if hidden == "_":
        assert ["São Paulo \x9b1m: [redacted], [redacted]"] == told


@pytest.mark.promise("snapshots")
def test_events_count_in_a_snapshot(
    api: httpx2.Client, control: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of twenty kept 64 MiB of them besides."""
    snapshot(control, "before")
    customer = created(api.post("/v2/customers", json=customer_body()))["customer"]["id"]
    large = {f"{number}": "x" * 500 for number in range(50)}
    for number in range(40):
        changed = api.put(
            f"/v2/customers/{customer}", json={"metadata": large | {"0": f"{number}"}}
        )
        assert 200 == changed.status_code
    monkeypatch.setattr(entry, "MOST_SNAPSHOT_BYTES", 6 * 1024 * 1024)
    refused(control.post("/snapshots", json={"name": "after"}), 409, "too_many_snapshots")
