"""The PostgreSQL that tests are given: databases are empty and apart, and a stop loses no commit."""

import psycopg
import pytest

from ..support.postgres import Postgres

pytestmark = pytest.mark.check


def test_each_database_is_empty_and_gone_afterwards(postgres: Postgres) -> None:
    seen = []
    for _ in range(3):
        with postgres.database() as url, psycopg.connect(url) as connection:
            connection.execute("create table notes (text text)")
            connection.execute("create schema other create table notes (text text)")
            seen.append(url)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
    assert 3 == len(set(seen))


def test_databases_are_apart(postgres: Postgres, database: str) -> None:
    with postgres.database() as other, psycopg.connect(other) as theirs, psycopg.connect(database) as ours:
        theirs.execute("create table notes (text text)")
        with pytest.raises(psycopg.errors.UndefinedTable):
            ours.execute("select * from notes")


def test_connections_of_one_database_are_cut(postgres: Postgres, database: str) -> None:
    with postgres.database() as other, psycopg.connect(other) as left, psycopg.connect(database) as first:
        second = psycopg.connect(database)
        assert 2 == postgres.cut(database)
        for cut in (first, second):
            with pytest.raises(psycopg.OperationalError):
                cut.execute("select 1")
        left.execute("select 1")
        psycopg.connect(database).close()
        assert 0 == postgres.cut(database)


def test_what_was_committed_outlives_a_stop_and_what_was_not_does_not(postgres: Postgres, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table notes (text text)")
        connection.execute("insert into notes values ('kept')")
    with psycopg.connect(database) as open_one:
        open_one.execute("insert into notes values ('lost')")
        postgres.stop()
        with pytest.raises(psycopg.OperationalError):
            open_one.execute("select 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(database)
    postgres.restart()
    with psycopg.connect(database) as again:
        assert [("kept",)] == again.execute("select text from notes").fetchall()


def test_a_test_that_leaves_it_stopped_harms_no_other(postgres: Postgres) -> None:
    with postgres.database():
        postgres.stop()
    with postgres.database() as url, psycopg.connect(url) as connection:
        connection.execute("select 1")
