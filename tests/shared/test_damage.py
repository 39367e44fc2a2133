"""Rows of a database that are damaged or not there: what they are of is not served, said once, and
left as it is.
"""

from contextlib import closing

import httpx2
import psycopg
import pytest
from psycopg.sql import SQL

from ..support.files import exported, imported
from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.processes import Process
from .conftest import FLAGS

pytestmark = [pytest.mark.check, pytest.mark.turn]
_PARTS = {
    "its": SQL("(select id from sandboxes where name = %(name)s)"),
    "its_state": SQL(
        "(select id from states where name = '' and sandbox = (select id from sandboxes where name"
        " = %(name)s))"
    ),
    "flipped_line": SQL("set_byte(line, length(line) / 2, get_byte(line, length(line) / 2) # 16)"),
    "flipped_body": SQL("set_byte(body, length(body) / 2, get_byte(body, length(body) / 2) # 16)"),
}
DAMAGES = {
    "a step": SQL("update steps set line = {flipped_line} where place >> 32 = {its}"),
    "no newest step": SQL(
        "delete from steps where place = (select max(place) from steps where place >> 32 = {its})"
    ),
    "the sum of a step": SQL("update steps set sum = sum # 1 where place >> 32 = {its}"),
    "no oldest step": SQL(
        "delete from steps where place = (select min(place) from steps where place >> 32 = {its})"
    ),
    "a part": SQL("update parts set body = {flipped_body} where state = {its_state}"),
    "no part": SQL("delete from parts where state = {its_state}"),
    "the row": SQL("update sandboxes set created_at = 5 where name = %(name)s"),
    "the number of the newest step": SQL(
        "update sandboxes set newest = newest - 1 where name = %(name)s"
    ),
    "no snapshot": SQL("delete from states where name = 'before' and sandbox = {its}"),
    "the snapshot": SQL(
        "update states set about = about || ' ' where name = 'before' and sandbox = {its}"
    ),
}


def test_what_is_damaged_is_not_served_and_everything_else_is(database: str) -> None:
    names = {f"hurt-{number}": damage for number, damage in enumerate(DAMAGES)}
    with Process("--store", database, *FLAGS) as server:
        for name in (*names, "whole"):
            with server.api(name) as api, server.control(name) as control:
                created(api.post("/v2/customers", json=customer_body()))
                created(control.post("/snapshots", json={"name": "before"}))
                imported(control, exported(control))  # with a state of its own
                for _ in range(3):
                    created(api.post("/v2/customers", json=customer_body()))
        server.stop()
    with closing(psycopg.connect(database, autocommit=True)) as connection:
        # as if no key held rows together
        connection.execute("set session_replication_role = replica")
        for name, damage in names.items():
            done = connection.execute(DAMAGES[damage].format(**_PARTS), {"name": name})
            assert done.rowcount, damage
        before = connection.execute("select count(*), sum(sum) from steps").fetchall()
    with (
        Process("--store", database, *FLAGS) as server,
        httpx2.Client(base_url=server.url, verify=NO_TLS) as client,
    ):
        for name, damage in names.items():
            for path in ("/_sandbox/clock", "/_sandbox/credentials"):
                answer = client.get(f"/s/{name}{path}")
                assert (503, "store_unavailable") == (
                    answer.status_code,
                    answer.json()["code"],
                ), damage
        with server.api("whole") as api:
            assert 4 == api.get("/v2/customers").json()["pagination"]["total"]
        said = server.stop()
    assert "Traceback" not in said
    assert [] == [damage for name, damage in names.items() if name not in said]
    with closing(psycopg.connect(database)) as connection:
        assert before == connection.execute("select count(*), sum(sum) from steps").fetchall()
