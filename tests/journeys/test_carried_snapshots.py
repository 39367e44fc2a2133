"""Snapshots in a sandbox's file: exported with it, restored where it is imported, judged as
everything else in it.
"""

import gzip
from collections.abc import Iterator
from unittest.mock import patch

import httpx2
import pytest

from stub_server.server.sandboxes import entry
from stub_server.testing import Sandbox, Server

from ..support.files import HEADERS, Line, exported, imported, lines, sealed
from ..support.live import Live
from ..support.make import Json, created, customer_body, done, list_of, object_of, order_body
from ..support.receiver import Receiver
from .past import everything

pytestmark = pytest.mark.check


@pytest.fixture(scope="module")
def live(small: Live) -> Live:
    """Files of small worlds."""
    return small


def snapshot(side: Sandbox, name: str, **more: object) -> Json:
    """A new one."""
    return object_of(
        created(side.control.post("/snapshots", json={"name": name, **more})), "snapshot"
    )


def listed(side: Sandbox) -> list[Json]:
    """All of them."""
    return list_of(done(side.control.get("/snapshots")), "snapshots")


def test_a_snapshot_is_restored_where_the_file_was_imported(
    sandbox: Sandbox, there: Sandbox
) -> None:
    """Each has the state, the description and the times that it was made with, and the same bytes
    come out again.
    """
    here = sandbox
    created(here.api.post("/v2/customers", json=customer_body()))
    first = snapshot(here, "first", description="One customer")
    was = everything(here.api, here.control)
    sample = here.control.get("/credentials").json()["sample"]
    created(here.api.post("/v2/orders/pix", json=order_body(sample["projectId"], sample["planId"])))
    done(here.control.post("/clock/advance", json={"days": 40}))
    snapshot(here, "second")
    snapshot(there, "of-before")
    file = exported(here.control)
    assert file == exported(here.control)
    imported(there.control, file)
    assert listed(here) == listed(there)
    assert ["second", "first"] == [snapshot["name"] for snapshot in listed(there)]
    assert first == listed(there)[1]
    restored = done(there.control.post("/snapshots/first/restore"))["sandbox"]
    assert (first["now"], first["records"]) == (restored["now"], restored["records"])
    done(here.control.post("/snapshots/first/restore"))
    assert was == everything(here.api, here.control)
    reads = everything(there.api, there.control)
    # seeded keys follow from the name
    assert {"/api-keys 1"} == {name for name in was if was[name] != reads[name]}
    assert done(there.control.get("/invariants"))["ok"]


@pytest.mark.promise("snapshots-without-secrets")
def test_a_file_without_secrets_has_none_in_its_snapshots(
    sandbox: Sandbox, there: Sandbox, receiver: Receiver
) -> None:
    here = sandbox
    body = {
        "url": receiver.url,
        "events": ["*"],
        "headers": [{"name": "X-Token", "value": "a-secret-of-theirs"}],
    }
    hook = created(here.api.post("/v2/webhooks", json=body))["webhook"]
    sample = here.control.get("/credentials").json()["sample"]
    order = order_body(sample["projectId"], sample["planId"])
    created(
        here.api.post("/v2/orders/pix", json=order, headers={"Idempotency-Key": "told-to-nobody"})
    )
    snapshot(here, "a")
    # from here on the snapshot alone has them
    done(here.control.post("/rewind", json={"to_step": 0}))
    texts = [
        gzip.decompress(exported(here.control, secrets=told)).decode() for told in (True, False)
    ]
    for secret in (hook["signing_key"], "a-secret-of-theirs", "told-to-nobody"):
        assert [True, False] == [secret in text for text in texts], secret
    imported(there.control, exported(here.control, secrets=False))
    own = there.control.get("/credentials").json()["private_key"]
    done(there.control.post("/snapshots/a/restore"))
    there.api.headers["Authorization"] = f"Bearer {own}"
    assert hook["id"] in [found["id"] for found in done(there.api.get("/v2/webhooks"))["webhooks"]]


@pytest.fixture(scope="module")
def file(sandbox_server: Server) -> Iterator[list[Line]]:
    """A file with a snapshot and a history."""
    with sandbox_server.sandbox() as made:
        made.customer()
        snapshot(made, "clean")
        yield lines(exported(made.control, history=True))


@pytest.mark.promise("snapshots-of-files")
def test_snapshots_that_do_not_fit_are_refused_before_anything_changes(
    live: Live, control: httpx2.Client, file: list[Line]
) -> None:
    """Those that they take the place of make room."""
    budget = live.app.sandboxes.entry("default").snapshots.budget
    imported(control, sealed(file))
    used = budget.used
    imported(control, sealed(file))
    assert used == budget.used
    before = exported(control)
    for place, name, most in ((entry, "MOST_SNAPSHOT_BYTES", 1_000), (budget, "most", used - 1)):
        with patch.object(place, name, most):
            answer = control.post("/import", content=sealed(file), headers=HEADERS)
        assert (422, "too_large") == (answer.status_code, answer.json()["details"][0]["code"])
    assert before == exported(control)
    with patch.object(budget, "most", used):
        imported(control, sealed(file))
