"""A change of a sandbox that this server does not hold any more is not made at all, and made when
it is sent again.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from unittest.mock import patch

import httpx2
import psycopg
import pytest

from stub_server.engine import kept
from stub_server.settings import Settings

from ..support.ends import within
from ..support.files import exported, imported
from ..support.live import NO_TLS, Live, running
from ..support.make import Json, created, customer_body
from ..support.postgres import Postgres
from .conftest import Pair

PATIENCE = 30.0
pytestmark = [pytest.mark.check, pytest.mark.turn]
COUNTING = """
create table counted (steps bigint);
create function count_steps() returns trigger language plpgsql as
    $$ begin insert into counted select count(*) from added; return null; end $$;
create trigger counting after insert on steps referencing new table as added
    for each statement execute function count_steps();
"""


def test_what_nobody_knows_to_be_done_shows_with_the_next_read(
    pair: Pair, postgres: Postgres
) -> None:
    """The connection breaks within the commit, which is done."""
    doubted = "/_sandbox/sandboxes/doubted"
    with (
        pair.holder.api("doubted") as here,
        pair.other.api("doubted") as there,
        ThreadPoolExecutor(1) as pool,
    ):
        created(here.post("/v2/customers", json=customer_body()))
        for method, url in (
            ("POST", f"{pair.holder.url}/s/doubted/_sandbox/reset"),
            ("DELETE", f"{pair.holder.url}{doubted}"),
        ):
            with postgres.unanswered("stub-server commits"):
                answer = pool.submit(here.request, method, url)
            assert (503, "store_unavailable") == (
                answer.result().status_code,
                answer.result().json()["code"],
            )
            for api in (here, there):
                if method == "POST":
                    assert 0 == api.get("/v2/customers").json()["pagination"]["total"]
                else:
                    assert (
                        404
                        == httpx2.get(
                            f"{str(api.base_url).partition('/s/')[0]}{doubted}", verify=NO_TLS
                        ).status_code
                    )


def test_the_keys_of_a_sandbox_are_those_of_the_one_in_its_place(pair: Pair) -> None:
    """A new one of the name has keys that the one before had: each server finds it by them."""
    with (
        pair.holder.control() as control,
        httpx2.Client(base_url=pair.other.url, verify=NO_TLS) as elsewhere,
    ):
        for _ in range(3):
            made = created(control.post("/sandboxes", json={"name": "keyed", "scenario": "empty"}))[
                "sandbox"
            ]
            for _ in range(2):
                headers = {"Authorization": f"Bearer {made['credentials']['private_key']}"}
                answer = elsewhere.get("/v2/customers", headers=headers)
                assert 200 == answer.status_code, answer.text
                time.sleep(1.2)  # what was deleted is gone by then, and nothing is remembered
                assert 200 == control.post("/reset", headers={"X-Sandbox": "keyed"}).status_code
            assert 204 == control.delete("/sandboxes/keyed").status_code


@pytest.mark.promise("credential-of-one-sandbox")
def test_a_copy_takes_no_key_from_its_parent_at_another_server(pair: Pair) -> None:
    with pair.holder.api("parent") as api, pair.holder.control("parent") as control:
        own = key_of(api)
        file = exported(control)
    with pair.other.control("copied") as control:
        imported(control, file)
    with pair.holder.api("parent") as api:
        made = created(api.post("/v2/customers", json=customer_body()))["customer"]["id"]
    for server in (pair.holder, pair.other):
        answer = httpx2.get(f"{server.url}/v2/customers/{made}", headers=own, verify=NO_TLS)
        assert 200 == answer.status_code, answer.text


def key_of(api: httpx2.Client) -> dict[str, str]:
    """The header of an API key that a user has made."""
    made = created(api.post("/api-keys", json={"name": "k", "scopes": ["customers:read"]}))
    return {"Authorization": f"Bearer {made['api_key']['private_key']}"}


def test_all_steps_of_a_commit_are_written_at_once(pair: Pair) -> None:
    """Between two of them a server could be stopped, and the database would keep its transaction
    and its locks: no other one could take over the sandbox.
    """
    with psycopg.connect(pair.database, autocommit=True) as database:
        database.execute(COUNTING)
        with pair.holder.control() as control:
            created(control.post("/sandboxes", json={"name": "lively", "scenario": "default"}))
            control.base_url = f"{pair.holder.url}/s/lively/_sandbox"
            assert 200 == control.post("/clock/advance", json={"months": 2}).status_code
        row = database.execute("select max(steps) from counted").fetchone()
    assert row is not None
    assert row[0] > 1


def far(live: Live) -> httpx2.Client:
    """The API of a sandbox."""
    address = f"{live.url}/s/far"
    own = httpx2.get(f"{address}/_sandbox/credentials", verify=NO_TLS).json()["jwt"]
    headers = {"Authorization": f"Bearer {own}"}
    return httpx2.Client(base_url=address, headers=headers, verify=NO_TLS, timeout=PATIENCE)


@contextmanager
def going_back(database: str, *more: Json) -> Iterator[tuple[Live, list[Future[httpx2.Response]]]]:
    """A sandbox goes back to before its 20 customers, which no log has room for: the state is
    stored, and waits for a lock. Then it makes more customers.
    """
    settings = Settings(store=database, scenario="empty")
    with running(settings) as live, far(live) as api, ThreadPoolExecutor(2) as pool:
        created(api.post("/_sandbox/snapshots", json={"name": "none"}))
        for _ in range(20):
            created(api.post("/v2/customers", json=customer_body()))
        with patch.object(kept, "MOST_BYTES", 10_000), psycopg.connect(database) as lock:
            lock.execute("lock table parts in exclusive mode")
            back = pool.submit(api.post, "/_sandbox/snapshots/none/restore")
            assert within(PATIENCE, lambda: bool(waiting_for_lock(database)))
            after = [pool.submit(api.post, "/v2/customers", json=body) for body in more]
            yield live, [back, *after]
            lock.rollback()


def waiting_for_lock(database: str) -> list[int]:
    """The connections that wait to write a part of a state."""
    found = (
        "select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%parts%'"
    )
    with psycopg.connect(database) as asking:
        return [pid for (pid,) in asking.execute(found)]


@pytest.mark.promise("nothing-request-costs-more-length")
def test_no_other_change_waits_for_the_state_of_a_large_one(database: str) -> None:
    """What the same sandbox does meanwhile is stored with the state."""
    with going_back(database, customer_body()) as (live, (back, after)):
        with httpx2.Client(base_url=live.url, verify=NO_TLS, timeout=2) as other:
            own = other.get("/_sandbox/credentials").json()["jwt"]
            headers = {"Authorization": f"Bearer {own}"}
            created(other.post("/v2/customers", json=customer_body(), headers=headers))
        assert not back.done()
        assert not after.done()
    assert 200 == back.result().status_code
    made = created(after.result())["customer"]["id"]
    with running(Settings(store=database)) as again, far(again) as api:
        listed = api.get("/v2/customers").json()["customers"]
    assert [made] == [customer["id"] for customer in listed]


def test_a_state_that_cannot_be_written_leaves_what_was_there(database: str) -> None:
    """The connection that writes it ends: the change is refused."""
    with going_back(database) as (_, (back,)), psycopg.connect(database) as ending:
        ending.execute("select pg_terminate_backend(%s)", waiting_for_lock(database))
        assert (503, "store_unavailable") == (
            back.result().status_code,
            back.result().json()["code"],
        )
    with running(Settings(store=database)) as again, far(again) as api:
        assert 20 == api.get("/v2/customers").json()["pagination"]["total"]
