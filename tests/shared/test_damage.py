"""Rows of a database that are damaged or not there: what they are of is not served, said once, and left as it is."""

from contextlib import closing

import httpx2
import psycopg
import pytest

from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.processes import Process
from .conftest import FLAGS

pytestmark = pytest.mark.check
_ITS = "select id from sandboxes where name = %s"
_STATE = "select state from sandboxes where name = %s"
_STEPS = f"place >> 32 = ({_ITS})"
_CHUNK = (  # that no other sandbox has
    f"select digest from state_chunks where state = ({_STATE}) and digest not in (select digest from state_chunks "  # noqa: S608
    f"join states on states.id = state where sandbox <> ({_ITS})) limit 1"
)
_FLIPPED = "set_byte({0}, length({0}) / 2, get_byte({0}, length({0}) / 2) # 16)"
DAMAGES = {
    "a step": f"update steps set line = {_FLIPPED.format('line')} where {_STEPS}",  # noqa: S608
    "the sum of a step": f"update steps set sum = sum # 1 where {_STEPS}",  # noqa: S608
    "no newest step": f"delete from steps where place = (select max(place) from steps where {_STEPS})",  # noqa: S608
    "no oldest step": f"delete from steps where place = (select min(place) from steps where {_STEPS})",  # noqa: S608
    "a chunk": f"update chunks set body = {_FLIPPED.format('body')} where digest in ({_CHUNK})",  # noqa: S608
    "a chunk cut off": f"update chunks set body = substr(body, 1, length(body) / 2) where digest in ({_CHUNK})",  # noqa: S608
    "no chunk": f"delete from chunks where digest in ({_CHUNK})",  # noqa: S608
    "a chunk less": f"delete from state_chunks where state = ({_STATE})",  # noqa: S608
    "no state": f"delete from states where id = ({_STATE})",  # noqa: S608
    "the row": "update sandboxes set held = 5 where name = %s",
    "another row's time": "update sandboxes set newest = newest - 1 where name = %s",
    "no snapshot": f"delete from snapshots where sandbox = ({_ITS})",  # noqa: S608
    "the snapshot": f"update snapshots set now = now + 1 where sandbox = ({_ITS})",  # noqa: S608
}


def test_what_is_damaged_is_not_served_and_everything_else_is(database: str) -> None:
    names = {f"hurt-{number}": damage for number, damage in enumerate(DAMAGES)}
    with Process("--store", database, *FLAGS) as server:
        for name in (*names, "whole"):
            with server.api(name) as api, server.control(name) as control:
                created(api.post("/v2/customers", json=customer_body()))
                created(control.post("/snapshots", json={"name": "before"}))
                file = control.get("/export").content  # with a state of its own
                media = {"Content-Type": "application/vnd.stub.sandbox+gzip"}
                assert 200 == control.post("/import", content=file, headers=media).status_code
                for _ in range(3):
                    created(api.post("/v2/customers", json=customer_body()))
        server.stop()
    with closing(psycopg.connect(database, autocommit=True)) as connection:
        connection.execute("set session_replication_role = replica")  # as if no key held rows together
        for name, damage in names.items():
            statement = DAMAGES[damage]
            assert connection.execute(statement, (name,) * statement.count("%s")).rowcount, damage
        before = connection.execute("select count(*), sum(sum) from steps").fetchall()
    with Process("--store", database, *FLAGS) as server, httpx2.Client(base_url=server.url, verify=NO_TLS) as client:
        for name, damage in names.items():
            for path in ("/_sandbox/clock", "/_sandbox/credentials"):
                answer = client.get(f"/s/{name}{path}")
                assert (503, "store_unavailable") == (answer.status_code, answer.json()["code"]), damage
        with server.api("whole") as api:
            assert 4 == api.get("/v2/customers").json()["pagination"]["total"]
        said = server.stop()
    assert "Traceback" not in said
    assert [] == [damage for name, damage in names.items() if name not in said]
    with closing(psycopg.connect(database)) as connection:
        assert before == connection.execute("select count(*), sum(sum) from steps").fetchall()
