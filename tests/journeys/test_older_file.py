"""A file that an earlier server wrote, of the first format: every later one reads it."""

import gzip
from pathlib import Path

import httpx2
import pytest

from ..support.files import imported
from ..support.make import order_body
from .steps import refused

WRITTEN = Path(__file__).with_name("version-1.ndjson")
"""An empty sandbox in which a plan was bought, forty days passed, and the newest step was taken back.

It has steps, a snapshot, signing keys, and the reply of an Idempotency-Key.
"""
ORDER = "d58a60fe-75db-4973-a714-6add206aecb0"


@pytest.fixture
def older(control: httpx2.Client) -> httpx2.Client:
    """The control surface of the sandbox that the file was put into."""
    assert 16 == imported(control, gzip.compress(WRITTEN.read_bytes()))["step"]
    return control


def test_an_older_file_is_the_sandbox_that_it_was(older: httpx2.Client, api: httpx2.Client) -> None:
    assert "paid" == api.get(f"/v2/orders/{ORDER}").json()["status"]
    assert ["active"] == [found["status"] for found in api.get("/v2/subscriptions").json()["subscriptions"]]
    assert ["Marina Duarte"] == [found["name"] for found in api.get("/v2/customers").json()["customers"]]
    health = older.get("/health").json()
    assert "2026-12-30T14:32:05.123Z" == health["now"]
    assert 200 == older.get("/invariants").status_code


def test_its_past_and_its_snapshot_are_there(older: httpx2.Client, api: httpx2.Client) -> None:
    assert "pending" == api.get(f"/v2/orders/{ORDER}", headers={"X-Sandbox-As-Of": "5"}).json()["status"]
    assert 200 == older.post("/snapshots/pending/restore").status_code
    assert "pending" == api.get(f"/v2/orders/{ORDER}").json()["status"]
    assert 200 == older.post("/rewind", json={"to_step": 2}).status_code
    refused(api.get(f"/v2/orders/{ORDER}"), 404, "not_found")


def test_a_reply_that_was_saved_is_given_again(older: httpx2.Client, api: httpx2.Client) -> None:
    assert 200 == older.post("/snapshots/pending/restore").status_code
    plan = api.get("/v2/plans").json()["plans"][0]
    body = order_body(plan["projectId"], plan["id"])
    body["customer"]["email"] = "succeed_with_delay@example.com"
    again = api.post("/v2/orders/pix", json=body, headers={"Idempotency-Key": "golden"})
    assert (201, "true", ORDER) == (again.status_code, again.headers["idempotent-replayed"], again.json()["id"])
