"""A change of a sandbox that this server does not hold any more is not made at all, and made when
it is sent again.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import psycopg
import pytest

from ..support.files import exported, imported
from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.postgres import Postgres
from .conftest import Pair

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


def test_a_rotation_stores_the_keys_that_it_makes_alone(pair: Pair) -> None:
    """A statement for each key that users made would keep the commits of all sandboxes waiting."""
    with psycopg.connect(pair.database, autocommit=True) as database:
        database.execute(COUNTING.replace("steps", "credentials"))
        with pair.holder.api("keys") as api, pair.holder.control("keys") as control:
            for _ in range(20):
                key_of(api)
            database.execute("truncate counted")
            assert 200 == control.post("/sandboxes/keys/rotate", json={}).status_code
        found = database.execute("select credentials from counted").fetchall()
        database.execute("drop table counted cascade; drop function count_credentials cascade")
    assert [(2,)] == found


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
