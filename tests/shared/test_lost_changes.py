"""A change of a sandbox that this server does not hold any more is not made at all, and made when it is sent again."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from ..support.make import created, customer_body
from .conftest import Pair

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
