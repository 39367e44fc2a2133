"""A change of a sandbox that this server does not hold any more is not made at all, and made when it is sent again."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import psycopg
import pytest
from psycopg.sql import SQL, Composed, Identifier

from stub_server.persistence.sql import Kept

from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.postgres import Postgres
from ..support.processes import Process
from .conftest import FLAGS, Pair

pytestmark = pytest.mark.check
NOT_OURS = """
create function given_away() returns trigger language plpgsql as $$ begin new.holder = 0; return new; end $$;
create trigger given_away before insert on sandboxes for each row execute function given_away();
"""
OURS = "drop trigger given_away on sandboxes; drop function given_away"


@contextmanager
def given_away(database: str) -> Iterator[None]:
    """What servers reserve in the block is not theirs when they come to enter it, as where a lease ends meanwhile."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(NOT_OURS)
        try:
            yield
        finally:
            connection.execute(OURS)


def test_a_new_sandbox_is_there_or_not(pair: Pair) -> None:
    with pair.holder.control() as control:
        with given_away(pair.database):
            for path, body in (("", {"name": "half"}), ("/team/fork", {"name": "half"})):
                answer = control.post(f"/sandboxes{path}", json=body)
                assert (503, "store_unavailable") == (answer.status_code, answer.json()["code"])
                assert answer.headers["retry-after"]
                assert 404 == control.get("/sandboxes/half").status_code
        created(control.post("/sandboxes", json={"name": "half"}))


def test_a_reset_puts_a_sandbox_in_the_place_of_another_or_leaves_it(pair: Pair) -> None:
    with pair.holder.control("kept") as control, pair.holder.api("kept") as api:
        mine = created(api.post("/v2/customers", json=customer_body()))["customer"]["id"]
        with given_away(pair.database):
            assert 503 == control.post("/reset").status_code
        assert 200 == api.get(f"/v2/customers/{mine}").status_code
    with pair.other.api("kept") as api:
        assert 200 == api.get(f"/v2/customers/{mine}").status_code


def test_what_nobody_knows_to_be_done_shows_with_the_next_read(pair: Pair, postgres: Postgres) -> None:
    """The connection breaks within the commit, which is done."""
    doubted = "/_sandbox/sandboxes/doubted"
    with pair.holder.api("doubted") as here, pair.other.api("doubted") as there, ThreadPoolExecutor(1) as pool:
        created(here.post("/v2/customers", json=customer_body()))
        for method, url in (
            ("POST", f"{pair.holder.url}/s/doubted/_sandbox/reset"),
            ("DELETE", f"{pair.holder.url}{doubted}"),
        ):
            with postgres.unanswered("stub-server commits"):
                answer = pool.submit(here.request, method, url)
            assert (503, "store_unavailable") == (answer.result().status_code, answer.result().json()["code"])
            for api in (here, there):
                if method == "POST":
                    assert 0 == api.get("/v2/customers").json()["pagination"]["total"]
                else:
                    assert (
                        404
                        == httpx2.get(f"{str(api.base_url).partition('/s/')[0]}{doubted}", verify=NO_TLS).status_code
                    )


def test_the_keys_of_a_sandbox_are_those_of_the_one_in_its_place(pair: Pair) -> None:
    """A new one of the name has keys that the one before had: each server finds it by them."""
    with pair.holder.control() as control, httpx2.Client(base_url=pair.other.url, verify=NO_TLS) as elsewhere:
        for _ in range(3):
            made = created(control.post("/sandboxes", json={"name": "keyed", "scenario": "empty"}))["sandbox"]
            for _ in range(2):
                headers = {"Authorization": f"Bearer {made['credentials']['private_key']}"}
                answer = elsewhere.get("/v2/customers", headers=headers)
                assert 200 == answer.status_code, answer.text
                time.sleep(1.2)  # what was deleted is gone by then, and nothing is remembered
                assert 200 == control.post("/reset", headers={"X-Sandbox": "keyed"}).status_code
            assert 204 == control.delete("/sandboxes/keyed").status_code


def test_a_name_that_two_servers_hear_at_once_is_one_sandbox(pair: Pair) -> None:
    with ThreadPoolExecutor(8) as pool, httpx2.Client(verify=NO_TLS) as client:
        for number in range(10):
            urls = [f"{server.url}/s/new-{number}/_sandbox/credentials" for server in (pair.holder, pair.other) * 4]
            answers = [*pool.map(client.get, urls)]
            assert {200, 503} >= {answer.status_code for answer in answers}
            made = [answer.json() for answer in answers if answer.status_code == 200]
            assert 1 == len({(each["private_key"], each["merchant"]["id"]) for each in made})  # a JWT has its second
            assert all("retry-after" in answer.headers for answer in answers if answer.status_code == 503)


def test_what_another_server_is_about_to_enter_is_left_to_it(pair: Pair) -> None:
    """A server that starts deletes what was left without a name, unless one that lives has just reserved it."""
    columns = SQL(", ").join(map(Identifier, (*Kept._fields[1:], "sum")))
    copied = "insert into sandboxes ({0}, holder) select {0}, {1} from sandboxes where name = 'team' returning id"
    reserved = SQL(copied)
    with psycopg.connect(pair.database, autocommit=True) as connection:

        def numbers(statement: SQL | Composed) -> list[int]:
            return [number for (number,) in connection.execute(statement)]

        mine = numbers(reserved.format(columns, Identifier("holder")))
        nobodys = numbers(reserved.format(columns, 0))
        every = SQL("select id from sandboxes")
        with Process("--store", pair.database, *FLAGS):
            until = time.monotonic() + 10
            while nobodys[0] in numbers(every):
                assert time.monotonic() < until
                time.sleep(0.05)
        assert mine[0] in numbers(every)
        connection.execute("delete from sandboxes where id = %s", mine)
